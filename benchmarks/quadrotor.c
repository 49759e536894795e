/* One quadrotor in plain C: quadratic rotors, quadratic drag along the body axes, RK4, unit quaternion after each step, every state stored.
   State: position (3), quaternion w x y z (4), velocity in world axes (3), angular velocity in body axes (3). */
#include <math.h>

#define N 13
static const double mass = 0.5, Jx = 3.65e-3, Jy = 3.68e-3, Jz = 7.03e-3, g = 9.81;
static const double kF = 5.57e-6, kM = 1.36e-7, arm = 0.17 * 0.70710678118654752;
static const double half_rho = 0.5 * 1.225, cda_x = 0.010, cda_y = 0.012, cda_z = 0.020;

static inline void dynamics(const double *s, double thrust, double mx, double my, double mz, double *d) {
  const double w = s[3], x = s[4], y = s[5], z = s[6], p = s[10], q = s[11], r = s[12];
  const double k = 2.0 / (w * w + x * x + y * y + z * z);
  const double xx = 1 - k * (y * y + z * z), xy = k * (x * y - w * z), xz = k * (x * z + w * y);
  const double yx = k * (x * y + w * z), yy = 1 - k * (x * x + z * z), yz = k * (y * z - w * x);
  const double zx = k * (x * z - w * y), zy = k * (y * z + w * x), zz = 1 - k * (x * x + y * y);
  const double u = xx * s[7] + yx * s[8] + zx * s[9], v = xy * s[7] + yy * s[8] + zy * s[9], t = xz * s[7] + yz * s[8] + zz * s[9];
  const double pressure = half_rho * sqrt(u * u + v * v + t * t);
  const double fx = -pressure * cda_x * u, fy = -pressure * cda_y * v, fz = thrust - pressure * cda_z * t;
  d[0] = s[7]; d[1] = s[8]; d[2] = s[9];
  d[3] = 0.5 * (-x * p - y * q - z * r); d[4] = 0.5 * (w * p + y * r - z * q);
  d[5] = 0.5 * (w * q + z * p - x * r); d[6] = 0.5 * (w * r + x * q - y * p);
  d[7] = (xx * fx + xy * fy + xz * fz) / mass; d[8] = (yx * fx + yy * fy + yz * fz) / mass;
  d[9] = (zx * fx + zy * fy + zz * fz) / mass - g;
  d[10] = (mx - (Jz - Jy) * q * r) / Jx; d[11] = (my - (Jx - Jz) * p * r) / Jy; d[12] = (mz - (Jy - Jx) * p * q) / Jz;
}

void fly(double *s, const double *speed, double h, long steps, double *stored) {
  for (long i = 0; i < steps; i++) {
    double f[4], k1[N], k2[N], k3[N], k4[N], x[N];
    for (int j = 0; j < 4; j++) f[j] = kF * speed[j] * speed[j];
    const double thrust = f[0] + f[1] + f[2] + f[3];
    /* Rotors front left, rear left, rear right, front right; the first and third turn counter-clockwise. */
    const double mx = arm * (f[0] + f[1] - f[2] - f[3]), my = arm * (-f[0] + f[1] + f[2] - f[3]), mz = -kM / kF * (f[0] - f[1] + f[2] - f[3]);
    for (int j = 0; j < N; j++) stored[i * N + j] = s[j];
    dynamics(s, thrust, mx, my, mz, k1);
    for (int j = 0; j < N; j++) x[j] = s[j] + 0.5 * h * k1[j];
    dynamics(x, thrust, mx, my, mz, k2);
    for (int j = 0; j < N; j++) x[j] = s[j] + 0.5 * h * k2[j];
    dynamics(x, thrust, mx, my, mz, k3);
    for (int j = 0; j < N; j++) x[j] = s[j] + h * k3[j];
    dynamics(x, thrust, mx, my, mz, k4);
    for (int j = 0; j < N; j++) s[j] += h / 6 * (k1[j] + 2 * k2[j] + 2 * k3[j] + k4[j]);
    const double n = 1 / sqrt(s[3] * s[3] + s[4] * s[4] + s[5] * s[5] + s[6] * s[6]);
    for (int j = 3; j < 7; j++) s[j] *= n;
  }
}
