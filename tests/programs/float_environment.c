/* A host that flushes denormal numbers and rounds upwards gets the same bits of
 * features, and of a network with every instruction set that runs here, and its
 * own environment back. The meshes are large enough for worker threads. */
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

enum { SIDE = 120, VERTICES = SIDE * SIDE, FACES = 2 * (SIDE - 1) * (SIDE - 1), POWERS = 3, CLASSES = 5 };
enum { BAND = 16, BAND_VERTICES = BAND * SIDE, BAND_FACES = 2 * (BAND - 1) * (SIDE - 1) }; /* the first rows */

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

static void make(eman_instruction_set set, int vertices, int face_count, eman_control *control, eman_context **context,
                 eman_mesh **mesh) {
  const eman_view p = {positions, vertices, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, face_count, 3, 0, 0, EMAN_INT32, 0};
  eman_context_options options;
  check(eman_context_options_init(&options, sizeof options));
  options.instruction_set = set;
  check(eman_context_create(&options, context));
  check(eman_control_init(control, sizeof *control));
  control->progress = progress;
  host_environment = environment();
  check(eman_mesh_create(*context, &p, &f, NULL, control, mesh));
}

static void compute(double *features) {
  const double powers[POWERS] = {0.5, 0.7, -2};
  const eman_mutable_view out = {features, VERTICES, 2 * POWERS, 0, 0, EMAN_FLOAT64, 0};
  eman_context *context;
  eman_mesh *mesh;
  eman_control control;
  make(EMAN_ISA_AUTO, VERTICES, FACES, &control, &context, &mesh);
  check(eman_mesh_reltan(mesh, powers, POWERS, NULL, &control, &out));
  eman_mesh_free(mesh);
  eman_context_free(context);
}

static void classify(eman_instruction_set set, float *logits) {
  const eman_mutable_view out = {logits, BAND_VERTICES, CLASSES, 0, 0, EMAN_FLOAT32, 0};
  eman_context *context;
  eman_mesh *mesh;
  eman_model *model;
  eman_control control;
  make(set, BAND_VERTICES, BAND_FACES, &control, &context, &mesh);
  check(eman_model_create(context, "{\"classes\": 5, \"hidden\": 32}", 7, &model));
  check(eman_model_logits(model, mesh, &control, &out));
  eman_model_free(model);
  eman_mesh_free(mesh);
  eman_context_free(context);
}

/* A set that does not run here has nothing to compare. */
static int runs(eman_instruction_set set) {
  eman_context_options options;
  eman_context *context = NULL;
  check(eman_context_options_init(&options, sizeof options));
  options.instruction_set = set;
  const eman_status status = eman_context_create(&options, &context);
  if (status != EMAN_E_UNSUPPORTED) check(status);
  eman_context_free(context);
  return status == EMAN_OK;
}

static void unusual_environment(void) {
  fesetround(FE_UPWARD);
  flush_denormals();
}

/* The number of instruction sets whose networks had other bits; tried receives how many ran. */
static int different_networks(const fenv_t *usual, int *tried) {
  static float plain[BAND_VERTICES][CLASSES], flushed[BAND_VERTICES][CLASSES];
  int different = 0;
  *tried = 0;
  for (eman_instruction_set set = EMAN_ISA_GENERIC; set <= EMAN_ISA_NEON; set++) {
    if (!runs(set)) continue;
    classify(set, *plain);
    unusual_environment();
    classify(set, *flushed);
    fesetenv(usual);
    different += memcmp(plain, flushed, sizeof plain) != 0 || plain[7][0] == plain[700][0];
    ++*tried;
  }
  return different;
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

  fenv_t usual;
  fegetenv(&usual);
  unusual_environment();
  const unsigned int before = environment();
  compute(flushed);
  const int restored = environment() == before;
  fesetenv(&usual);
  int sets;
  const int different = different_networks(&usual, &sets);

  double largest = 0;
  for (int i = 0; i < VERTICES * 2 * POWERS; i++) largest = fmax(largest, fabs(plain[i]));
  const int same = memcmp(plain, flushed, size) == 0;
  printf(
      "same bits: %d, environment restored: %d, flags kept: %d, seen by callbacks: %d, largest feature %g, "
      "%d of %d networks differ\n",
      same, restored, flags_kept, !seen_another, largest, different, sets);
  free(plain);
  free(flushed);
  return same && restored && flags_kept && !seen_another && largest > 0.01 && different == 0 && sets > 0 ? 0 : 1;
}
