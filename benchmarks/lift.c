/* Four quadrotors, a box and four cables of five segments; RK4, open loop. Each lane of a vector is a cable with its quadrotor.
   State: box 13, then 13 x 4 of the quadrotors, then 12 x 4 places and 12 x 4 velocities of the nodes from the quadrotor down. */
#include <math.h>
#include <string.h>

typedef double lane __attribute__((vector_size(32)));
typedef long mask __attribute__((vector_size(32)));

static const double g = 9.81, stiffness = 2e4, damping = 20, rest = 0.1, node_mass = 0.01;
static const double quad_mass = 0.5, box_mass = 2, quad_J[3] = {3.65e-3, 3.68e-3, 7.03e-3}, box_J[3] = {0.03, 0.06, 0.08};
static const lane hook[3] = {{0.3, -0.3, -0.3, 0.3}, {0.2, 0.2, -0.2, -0.2}, {0.05, 0.05, 0.05, 0.05}};

typedef struct { lane quad[13], node[4][3], speed[4][3]; double box[16]; } State;
#define VECTORS (sizeof(State) / sizeof(lane))

static inline lane root(lane x) { lane r; for (int i = 0; i < 4; i++) r[i] = sqrt(x[i]); return r; }
static inline double total(lane x) { return x[0] + x[1] + x[2] + x[3]; }

/* Rates of attitude and turn rate of bodies with moments of inertia J under moment M; the same text for numbers and for lanes. */
#define TURN(s, d, J, Mx, My, Mz) \
  do { \
    d[3] = 0.5 * (-s[4] * s[10] - s[5] * s[11] - s[6] * s[12]); d[4] = 0.5 * (s[3] * s[10] + s[5] * s[12] - s[6] * s[11]); \
    d[5] = 0.5 * (s[3] * s[11] + s[6] * s[10] - s[4] * s[12]); d[6] = 0.5 * (s[3] * s[12] + s[4] * s[11] - s[5] * s[10]); \
    d[10] = (Mx - (J[2] - J[1]) * s[11] * s[12]) * (1 / J[0]); d[11] = (My - (J[0] - J[2]) * s[10] * s[12]) * (1 / J[1]); \
    d[12] = (Mz - (J[1] - J[0]) * s[10] * s[11]) * (1 / J[2]); \
  } while (0)

static inline __attribute__((always_inline)) void dynamics(const State *restrict s, double thrust, State *restrict d) {
  const double *b = s->box, w = b[3], x = b[4], y = b[5], z = b[6], k = 2 / (w * w + x * x + y * y + z * z);
  const double R[3][3] = {{1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)},
                          {k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x)},
                          {k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y)}};
  double turn[3];
  lane arm[3], end[3], end_speed[3], top[3], pull[3], above[3];
  for (int i = 0; i < 3; i++) {
    arm[i] = R[i][0] * hook[0] + R[i][1] * hook[1] + R[i][2] * hook[2];
    turn[i] = R[i][0] * b[10] + R[i][1] * b[11] + R[i][2] * b[12];
  }
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, l = (i + 2) % 3;
    end[i] = b[i] + arm[i];
    end_speed[i] = b[7 + i] + turn[j] * arm[l] - turn[l] * arm[j];
  }
  for (int n = 0; n < 5; n++) {
    const lane *p = n ? s->node[n - 1] : s->quad, *v = n ? s->speed[n - 1] : s->quad + 7;
    const lane *q = n < 4 ? s->node[n] : end, *u = n < 4 ? s->speed[n] : end_speed;
    lane along[3], square = {0}, rate = {0};
    for (int i = 0; i < 3; i++) { along[i] = q[i] - p[i]; square += along[i] * along[i]; rate += along[i] * (u[i] - v[i]); }
    const lane length = root(square), inverse = 1 / length, stretch = length - rest;
    lane tension = (stiffness * stretch + damping * rate * inverse) * inverse;
    tension = (lane)((stretch > 0) & (tension > 0) & (mask)tension);
    for (int i = 0; i < 3; i++) pull[i] = tension * along[i];
    if (n == 0) memcpy(top, pull, sizeof top);
    else for (int i = 0; i < 3; i++) { d->node[n - 1][i] = v[i]; d->speed[n - 1][i] = (pull[i] - above[i]) / node_mass - (i == 2 ? g : 0); }
    memcpy(above, pull, sizeof above);
  }
  double M[3], *db = d->box;
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, l = (i + 2) % 3;
    M[i] = -total(arm[j] * pull[l] - arm[l] * pull[j]);
    db[i] = b[7 + i];
    db[7 + i] = -total(pull[i]) / box_mass - (i == 2 ? g : 0);
  }
  const double Mx = R[0][0] * M[0] + R[1][0] * M[1] + R[2][0] * M[2], My = R[0][1] * M[0] + R[1][1] * M[1] + R[2][1] * M[2];
  const double Mz = R[0][2] * M[0] + R[1][2] * M[1] + R[2][2] * M[2];
  TURN(b, db, box_J, Mx, My, Mz);
  db[13] = db[14] = db[15] = 0;
  const lane *q = s->quad, zero = {0}, c = 2 / (q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6]);
  const lane axis[3] = {c * (q[4] * q[6] + q[3] * q[5]), c * (q[5] * q[6] - q[3] * q[4]), 1 - c * (q[4] * q[4] + q[5] * q[5])};
  lane *dq = d->quad;
  for (int i = 0; i < 3; i++) { dq[i] = q[7 + i]; dq[7 + i] = (axis[i] * thrust + top[i]) / quad_mass - (i == 2 ? g : 0); }
  TURN(q, dq, quad_J, zero, zero, zero);
}

static inline void axpy(const State *y, double a, const State *x, State *out) {
  for (unsigned i = 0; i < VECTORS; i++) ((lane *)out)[i] = ((const lane *)y)[i] + a * ((const lane *)x)[i];
}

void fly(double *flat, double thrust, double h, long steps) {
  State s, k, x, sum;
  memcpy(s.box, flat, 13 * sizeof(double));
  memset(s.box + 13, 0, 3 * sizeof(double));
  memcpy(s.quad, flat + 13, sizeof(State) - sizeof s.box);
  for (long n = 0; n < steps; n++) {
    dynamics(&s, thrust, &k); axpy(&s, h / 6, &k, &sum); axpy(&s, h / 2, &k, &x);
    dynamics(&x, thrust, &k); axpy(&sum, h / 3, &k, &sum); axpy(&s, h / 2, &k, &x);
    dynamics(&x, thrust, &k); axpy(&sum, h / 3, &k, &sum); axpy(&s, h, &k, &x);
    dynamics(&x, thrust, &k); axpy(&sum, h / 6, &k, &s);
    const double b = 1 / sqrt(s.box[3] * s.box[3] + s.box[4] * s.box[4] + s.box[5] * s.box[5] + s.box[6] * s.box[6]);
    const lane q = 1 / root(s.quad[3] * s.quad[3] + s.quad[4] * s.quad[4] + s.quad[5] * s.quad[5] + s.quad[6] * s.quad[6]);
    for (int i = 3; i < 7; i++) { s.box[i] *= b; s.quad[i] *= q; }
  }
  memcpy(flat, s.box, 13 * sizeof(double));
  memcpy(flat + 13, s.quad, sizeof(State) - sizeof s.box);
}
