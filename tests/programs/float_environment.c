/* A host that flushes denormal numbers and rounds upwards gets the same bits,
 * and its own environment back. The mesh is large enough for worker threads. */
#include <eman.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
static void flush_denormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
static unsigned int environment(void) { return _mm_getcsr() & ~0x3Fu; }
#else
static void flush_denormals(void) {}
static unsigned int environment(void) { return (unsigned int)fegetround(); }
#endif

enum { SIDE = 120, VERTICES = SIDE * SIDE, FACES = 2 * (SIDE - 1) * (SIDE - 1), POWERS = 3 };

static double positions[VERTICES][3];
static int32_t faces[FACES][3];

static void check(eman_status status) {
  if (status == EMAN_OK) return;
  fprintf(stderr, "%s\n", eman_last_error());
  exit(1);
}

/* The host's own functions must see the host's environment. */
static unsigned int host_environment;
static int seen_another;

static int32_t progress(void *user, double fraction) {
  (void)user;
  (void)fraction;
  seen_another |= environment() != host_environment;
  return 0;
}

static void compute(double *features) {
  const double powers[POWERS] = {0.5, 0.7, -2};
  const eman_view p = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, FACES, 3, 0, 0, EMAN_INT32, 0};
  const eman_mutable_view out = {features, VERTICES, 2 * POWERS, 0, 0, EMAN_FLOAT64, 0};
  eman_context *context;
  eman_mesh *mesh;
  check(eman_context_create(NULL, &context));
  eman_control control;
  check(eman_control_init(&control, sizeof control));
  control.progress = progress;
  host_environment = environment();
  check(eman_mesh_create(context, &p, &f, NULL, &control, &mesh));
  check(eman_mesh_reltan(mesh, powers, POWERS, NULL, &control, &out));
  eman_mesh_free(mesh);
  eman_context_free(context);
}

int main(void) {
  int face = 0;
  for (int i = 0; i < SIDE; i++) {
    for (int j = 0; j < SIDE; j++) {
      double *x = positions[i * SIDE + j];
      x[0] = i + 0.3 * sin(12.9898 * i + 78.233 * j);
      x[1] = j + 0.3 * cos(39.3467 * i + 11.135 * j);
      x[2] = sin(0.2 * i) * cos(0.3 * j) * 5;
      for (int k = 0; k < 3; k++) x[k] *= 1e-310; /* denormal coordinates */
      if (i + 1 == SIDE || j + 1 == SIDE) continue;
      const int32_t a = i * SIDE + j;
      const int32_t two[2][3] = {{a, a + SIDE, a + SIDE + 1}, {a, a + SIDE + 1, a + 1}};
      memcpy(faces[face], two, sizeof two);
      face += 2;
    }
  }
  const size_t size = sizeof(double) * VERTICES * 2 * POWERS;
  double *plain = malloc(size), *flushed = malloc(size);
  if (plain == NULL || flushed == NULL) return 1;
  feclearexcept(FE_ALL_EXCEPT);
  compute(plain);
  const int flags_kept = fetestexcept(FE_ALL_EXCEPT) == 0;

  fesetround(FE_UPWARD);
  flush_denormals();
  const unsigned int before = environment();
  compute(flushed);
  const int restored = environment() == before;
  fesetround(FE_TONEAREST);

  double largest = 0;
  for (int i = 0; i < VERTICES * 2 * POWERS; i++) largest = fmax(largest, fabs(plain[i]));
  const int same = memcmp(plain, flushed, size) == 0;
  printf("same bits: %d, environment restored: %d, flags kept: %d, seen by callbacks: %d, largest feature %g\n", same,
         restored, flags_kept, !seen_another, largest);
  free(plain);
  free(flushed);
  return same && restored && flags_kept && !seen_another && largest > 0.01 ? 0 : 1;
}
