/* Many quadrotors of quadrotor.c in single precision, as a structure of arrays in blocks of 64 lanes that the compiler vectorises; RK4, open loop.
   s holds 13 numbers by N vehicles, speed 4 by N. */
#include <math.h>

#define N_STATE 13
#define LANES 64
static const float mass = 0.5f, Jx = 3.65e-3f, Jy = 3.68e-3f, Jz = 7.03e-3f, g = 9.81f;
static const float kF = 5.57e-6f, kM = 1.36e-7f, arm = 0.17f * 0.70710678f;
static const float half_rho = 0.5f * 1.225f, cda_x = 0.010f, cda_y = 0.012f, cda_z = 0.020f;

static inline __attribute__((always_inline)) void dynamics(const float *s, float thrust, float mx, float my, float mz, float *d) {
  const float w = s[3], x = s[4], y = s[5], z = s[6], p = s[10], q = s[11], r = s[12];
  const float k = 2.0f / (w * w + x * x + y * y + z * z);
  const float xx = 1 - k * (y * y + z * z), xy = k * (x * y - w * z), xz = k * (x * z + w * y);
  const float yx = k * (x * y + w * z), yy = 1 - k * (x * x + z * z), yz = k * (y * z - w * x);
  const float zx = k * (x * z - w * y), zy = k * (y * z + w * x), zz = 1 - k * (x * x + y * y);
  const float u = xx * s[7] + yx * s[8] + zx * s[9], v = xy * s[7] + yy * s[8] + zy * s[9], t = xz * s[7] + yz * s[8] + zz * s[9];
  const float pressure = half_rho * sqrtf(u * u + v * v + t * t);
  const float fx = -pressure * cda_x * u, fy = -pressure * cda_y * v, fz = thrust - pressure * cda_z * t;
  d[0] = s[7]; d[1] = s[8]; d[2] = s[9];
  d[3] = 0.5f * (-x * p - y * q - z * r); d[4] = 0.5f * (w * p + y * r - z * q);
  d[5] = 0.5f * (w * q + z * p - x * r); d[6] = 0.5f * (w * r + x * q - y * p);
  d[7] = (xx * fx + xy * fy + xz * fz) / mass; d[8] = (yx * fx + yy * fy + yz * fz) / mass;
  d[9] = (zx * fx + zy * fy + zz * fz) / mass - g;
  d[10] = (mx - (Jz - Jy) * q * r) / Jx; d[11] = (my - (Jx - Jz) * p * r) / Jy; d[12] = (mz - (Jy - Jx) * p * q) / Jz;
}

static inline __attribute__((always_inline)) void step(float *s, const float *speed, float h) {
  float f[4], k1[N_STATE], k2[N_STATE], k3[N_STATE], k4[N_STATE], x[N_STATE];
  for (int j = 0; j < 4; j++) f[j] = kF * speed[j] * speed[j];
  const float thrust = f[0] + f[1] + f[2] + f[3];
  const float mx = arm * (f[0] + f[1] - f[2] - f[3]), my = arm * (-f[0] + f[1] + f[2] - f[3]), mz = -kM / kF * (f[0] - f[1] + f[2] - f[3]);
  dynamics(s, thrust, mx, my, mz, k1);
  for (int j = 0; j < N_STATE; j++) x[j] = s[j] + 0.5f * h * k1[j];
  dynamics(x, thrust, mx, my, mz, k2);
  for (int j = 0; j < N_STATE; j++) x[j] = s[j] + 0.5f * h * k2[j];
  dynamics(x, thrust, mx, my, mz, k3);
  for (int j = 0; j < N_STATE; j++) x[j] = s[j] + h * k3[j];
  dynamics(x, thrust, mx, my, mz, k4);
  for (int j = 0; j < N_STATE; j++) s[j] += h / 6 * (k1[j] + 2 * k2[j] + 2 * k3[j] + k4[j]);
  const float n = 1 / sqrtf(s[3] * s[3] + s[4] * s[4] + s[5] * s[5] + s[6] * s[6]);
  for (int j = 3; j < 7; j++) s[j] *= n;
}

void fly_many(float *s, const float *speed, float h, long steps, long n) {
#pragma omp parallel for schedule(static)
  for (long b = 0; b < n; b += LANES)
    for (long i = 0; i < steps; i++) {
#pragma GCC ivdep
      for (long lane = b; lane < b + LANES; lane++) {
        float state[N_STATE], u[4];
        for (int j = 0; j < N_STATE; j++) state[j] = s[j * n + lane];
        for (int j = 0; j < 4; j++) u[j] = speed[j * n + lane];
        step(state, u, h);
        for (int j = 0; j < N_STATE; j++) s[j * n + lane] = state[j];
      }
    }
}
