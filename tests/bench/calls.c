/* What the C interface adds: prints the nanoseconds of a call that only asks
 * (eman_mesh_counts), and those of labelling a small mesh on one thread
 * (eman_model_predict), as BenchmarkPredict of core does in Go. Both are the
 * smallest of many windows.
 *
 *   calls WINDOWS
 */
#define _POSIX_C_SOURCE 200809L
#include <eman.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 20, VERTICES = SIDE * SIDE, FACES = 2 * (SIDE - 1) * (SIDE - 1) };

static void check(eman_status status) {
  if (status == EMAN_OK) return;
  fprintf(stderr, "%s: %s\n", eman_status_name(status), eman_last_error());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* The sheet of BenchmarkPredict. */
static eman_mesh *make_sheet(eman_context *context) {
  static double positions[VERTICES][3];
  static int32_t faces[FACES][3];
  for (int32_t i = 0, f = 0; i < VERTICES; i++) {
    const double x = (double)(i % SIDE) / SIDE, y = (double)(i / SIDE) / SIDE;
    const double sheet[3] = {x, y, 0.2 * sin(5 * x + 1) * cos(4 * y * y) + 0.1 * x * y};
    for (int k = 0; k < 3; k++) positions[i][k] = sheet[k];
    if (i % SIDE == SIDE - 1 || i / SIDE == SIDE - 1) continue;
    const int32_t corners[6] = {i, i + 1, i + 1 + SIDE, i, i + 1 + SIDE, i + SIDE};
    for (int k = 0; k < 6; k++) faces[f + k / 3][k % 3] = corners[k];
    f += 2;
  }
  const eman_view p = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, FACES, 3, 0, 0, EMAN_INT32, 0};
  eman_mesh *mesh = NULL;
  check(eman_mesh_create(context, &p, &f, NULL, NULL, &mesh));
  return mesh;
}

int main(int argc, char **argv) {
  const int windows = argc == 2 ? atoi(argv[1]) : 0;
  if (windows < 1) {
    fprintf(stderr, "usage: %s WINDOWS\n", argv[0]);
    return 2;
  }
  eman_context_options options;
  check(eman_context_options_init(&options, sizeof options));
  options.threads = 1;
  eman_context *context = NULL;
  eman_model *model = NULL;
  check(eman_context_create(&options, &context));
  check(eman_model_create(context, "{\"classes\": 16}", 1, &model));
  eman_mesh *mesh = make_sheet(context);

  static int32_t labels[VERTICES];
  const eman_mutable_view out = {labels, VERTICES, 1, 0, 0, EMAN_INT32, 0};
  double call = INFINITY, predict = INFINITY;
  for (int i = 0; i < windows; i++) {
    enum { CALLS = 10000, PREDICTIONS = 5 };
    int64_t vertices, faces, edges;
    double start = now();
    for (int k = 0; k < CALLS; k++) check(eman_mesh_counts(mesh, &vertices, &faces, &edges));
    call = fmin(call, (now() - start) / CALLS);
    start = now();
    for (int k = 0; k < PREDICTIONS; k++) check(eman_model_predict(model, mesh, NULL, &out));
    predict = fmin(predict, (now() - start) / PREDICTIONS);
  }
  printf("{\"call\": %.1f, \"predict\": %.1f}\n", call, predict);

  eman_mesh_free(mesh);
  eman_model_free(model);
  eman_context_free(context);
  return 0;
}
