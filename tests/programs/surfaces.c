/* Networks on samples of a surface through the C interface: what can be read
 * out of them, what is kept between calls, clouds of points, training. The exit
 * status is 1 if a check failed. */
#include <eman.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 40, VERTICES = SIDE * SIDE, FACES = 2 * (SIDE - 1) * (SIDE - 1), CLASSES = 3, POINTS = 200, COARSE = 50 };

static const char *const description =
    "{\"preset\": \"surface\", \"kind\": \"eman\", \"classes\": 3, \"hidden\": 16, \"width\": 8, \"self_term\": false, "
    "\"surface\":"
    " {\"points\": [200, 50], \"neighbors\": 12, \"up_neighbors\": 4, \"scales\": [12, 40], \"lift_neighbors\": 5,"
    " \"blocks\": [1, 1, 1]}}";

static int failures;
static eman_context *context;
static double positions[VERTICES][3], frames[VERTICES][9];
static int32_t faces[FACES][3];

static void require(const char *what, int condition) {
  if (condition) return;
  printf("%s (last error: \"%s\")\n", what, eman_last_error());
  failures++;
}

static void refused(const char *what, eman_status status, eman_status want, const char *culprit) {
  if (status == want && strstr(eman_last_error(), culprit) != NULL) return;
  printf("%s: %s, \"%s\"; expected %s naming %s\n", what, eman_status_name(status), eman_last_error(),
         eman_status_name(want), culprit);
  failures++;
}

static eman_view view(const void *data, int64_t rows, int64_t columns, eman_dtype dtype) {
  const eman_view v = {data, rows, columns, 0, 0, dtype, 0};
  return v;
}

static eman_mutable_view output(void *data, int64_t rows, int64_t columns, eman_dtype dtype) {
  const eman_mutable_view v = {data, rows, columns, 0, 0, dtype, 0};
  return v;
}

/* A hilly sheet z = h(x, y), with frames whose normals are those of the surface. */
static void fill(double bump) {
  int f = 0;
  for (int i = 0; i < SIDE; i++) {
    for (int j = 0; j < SIDE; j++) {
      const int a = i * SIDE + j;
      const double x = i + 0.2 * sin(3.0 * j), y = j + 0.1 * cos(5.0 * i);
      const double z = bump * exp(-0.01 * ((x - 12) * (x - 12) + (y - 25) * (y - 25))) + sin(0.3 * x);
      const double slope_x = -0.02 * (x - 12) * (z - sin(0.3 * x)) + 0.3 * cos(0.3 * x);
      const double slope_y = -0.02 * (y - 25) * (z - sin(0.3 * x));
      const double along = sqrt(1 + slope_x * slope_x), size = sqrt(1 + slope_x * slope_x + slope_y * slope_y);
      const double e1[3] = {1 / along, 0, slope_x / along}, n[3] = {-slope_x / size, -slope_y / size, 1 / size};
      const double e2[3] = {n[1] * e1[2] - n[2] * e1[1], n[2] * e1[0] - n[0] * e1[2], n[0] * e1[1] - n[1] * e1[0]};
      positions[a][0] = x, positions[a][1] = y, positions[a][2] = z;
      memcpy(frames[a], e1, sizeof e1);
      memcpy(frames[a] + 3, e2, sizeof e2);
      memcpy(frames[a] + 6, n, sizeof n);
      if (i + 1 == SIDE || j + 1 == SIDE) continue;
      const int32_t pair[2][3] = {{a, a + SIDE, a + SIDE + 1}, {a, a + SIDE + 1, a + 1}};
      memcpy(faces[f], pair, sizeof pair);
      f += 2;
    }
  }
}

static eman_mesh *make_mesh(eman_context *in) {
  const eman_view p = view(positions, VERTICES, 3, EMAN_FLOAT64), f = view(faces, FACES, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  require("mesh", eman_mesh_create(in, &p, &f, NULL, NULL, &mesh) == EMAN_OK);
  return mesh;
}

static eman_model *make_model(const char *text) {
  eman_model *model = NULL;
  require(text, eman_model_create(context, text, 7, &model) == EMAN_OK);
  return model;
}

static int64_t used(void) {
  eman_context_info info = {.struct_size = sizeof info};
  require("describe", eman_context_describe(context, &info) == EMAN_OK);
  return info.memory_used;
}

/* How many of the labels differ. */
static int64_t different(const int32_t *a, const int32_t *b) {
  int64_t count = 0;
  for (int v = 0; v < VERTICES; v++) count += a[v] != b[v];
  return count;
}

static void predict(const char *what, const eman_model *model, const eman_mesh *mesh, int32_t *labels) {
  const eman_mutable_view y = output(labels, VERTICES, 1, EMAN_INT32);
  require(what, eman_model_predict(model, mesh, NULL, &y) == EMAN_OK);
}

static void layers(const eman_model *model, const eman_mesh *mesh) {
  int32_t count = 0;
  require("layers", eman_model_layer_count(model, &count) == EMAN_OK && count == 8);
  static float attention[POINTS * 30], features[POINTS * 8 * 5];
  static int64_t offsets[POINTS + 1];
  static int32_t indices[POINTS * 30];
  for (int32_t layer = 0; layer < count; layer++) {
    eman_layer_info info = {.struct_size = sizeof info};
    int64_t rows = 0, edges = 0;
    require("layer", eman_model_describe_layer(model, layer, &info) == EMAN_OK && info.heads == 1);
    require("size", eman_model_layer_size(model, mesh, layer, NULL, &rows, &edges) == EMAN_OK);
    const int coarse = strncmp(info.name, "levels.1", 8) == 0, up = strstr(info.name, "unpool") != NULL;
    require("rows", rows == (coarse ? COARSE : POINTS));
    require("edges", edges >= rows * (up ? 4 : 12) && edges <= rows * 30);
    const eman_mutable_view o = output(offsets, rows + 1, 1, EMAN_INT64), n = output(indices, edges, 1, EMAN_INT32),
                            a = output(attention, edges, 1, EMAN_FLOAT32),
                            f = output(features, rows, info.channels * (2 * info.order + 1), EMAN_FLOAT32),
                            little = output(indices, edges - 1, 1, EMAN_INT32);
    require("features", eman_model_features(model, mesh, layer, NULL, &f) == EMAN_OK);
    require("attention", eman_model_attention(model, mesh, layer, NULL, &a) == EMAN_OK);
    offsets[0] = -5;
    refused("little room", eman_model_layer_neighbors(model, mesh, layer, NULL, &o, &little), EMAN_E_BUFFER_TOO_SMALL,
            "indices");
    require("untouched", offsets[0] == -5);
    require("neighbours", eman_model_layer_neighbors(model, mesh, layer, NULL, &o, &n) == EMAN_OK);
    require("ends", offsets[0] == 0 && offsets[rows] == edges);
    const int32_t sources = strcmp(info.name, "levels.1.pool") == 0 ? POINTS : coarse || up ? COARSE : POINTS;
    for (int64_t p = 0; p < rows; p++) {
      double sum = 0;
      for (int64_t e = offsets[p]; e < offsets[p + 1]; e++) {
        sum += attention[e];
        require("a neighbour", indices[e] >= 0 && indices[e] < sources);
      }
      const double degree = (double)(offsets[p + 1] - offsets[p]);
      require("attention adds up to the number of neighbours", fabs(sum - degree) < 1e-4 * degree);
    }
  }
  int64_t rows = -3, edges = -3;
  refused("layer", eman_model_layer_size(model, mesh, count, NULL, &rows, &edges), EMAN_E_INVALID_ARGUMENT, "layer");
  require("untouched", rows == -3 && edges == -3);
}

/* Samples lie on the surface, move with it, and have unit normals. */
static void samples(const eman_model *model, const eman_mesh *mesh) {
  static double places[2][POINTS][3], normals[2][POINTS][3];
  static float narrow[POINTS][3];
  const double translation[3] = {5, -300, 2}, scale = 0.01;
  double rotation[9];
  eman_mesh *moved = NULL;
  require("rotation", eman_random_rotation(3, rotation) == EMAN_OK);
  require("moved", eman_mesh_transform(mesh, rotation, translation, scale, NULL, &moved) == EMAN_OK);
  const eman_mesh *const both[2] = {mesh, moved};
  for (int i = 0; i < 2; i++) {
    const eman_mutable_view p = output(places[i], POINTS, 3, EMAN_FLOAT64),
                            n = output(normals[i], POINTS, 3, EMAN_FLOAT64);
    require("samples", eman_model_samples(model, both[i], NULL, &p, &n) == EMAN_OK);
  }
  const eman_mutable_view p = output(narrow, POINTS, 3, EMAN_FLOAT32), n = output(normals[0], POINTS, 3, EMAN_FLOAT64),
                          flat = output(normals[0], POINTS, 2, EMAN_FLOAT64);
  require("samples in float32", eman_model_samples(model, mesh, NULL, &p, &n) == EMAN_OK);
  refused("columns", eman_model_samples(model, mesh, NULL, &p, &flat), EMAN_E_INVALID_ARGUMENT, "normals");
  for (int i = 0; i < POINTS; i++) {
    double length = 0;
    for (int k = 0; k < 3; k++) {
      double place = translation[k], normal = 0;
      for (int l = 0; l < 3; l++) {
        place += scale * rotation[3 * k + l] * places[0][i][l];
        normal += rotation[3 * k + l] * normals[0][i][l];
      }
      require("a sample moves with the mesh", fabs(place - places[1][i][k]) < 1e-9);
      require("its normal turns with the mesh", fabs(normal - normals[1][i][k]) < 1e-7);
      require("rounded", narrow[i][k] == (float)places[0][i][k]);
      length += normals[0][i][k] * normals[0][i][k];
    }
    require("a unit normal", fabs(length - 1) < 1e-12);
    double nearest = INFINITY;
    for (int v = 0; v < VERTICES; v++) {
      double squared = 0;
      for (int k = 0; k < 3; k++) squared += pow(positions[v][k] - places[0][i][k], 2);
      nearest = fmin(nearest, squared);
    }
    require("a sample on the sheet", nearest < 1);
  }
  eman_mesh_free(moved);
}

/* On vertices the sizes and edges are those of the mesh, and there are no samples. */
static void on_vertices(const eman_mesh *mesh) {
  eman_model *model = make_model("{\"classes\": 3, \"hidden\": 8, \"width\": 8}");
  int64_t vertices, count, edges, rows = 0, found = 0;
  require("counts", eman_mesh_counts(mesh, &vertices, &count, &edges) == EMAN_OK);
  require("size", eman_model_layer_size(model, mesh, 2, NULL, &rows, &found) == EMAN_OK);
  require("those of the mesh", rows == vertices && found == edges);
  int32_t *indices = malloc(2 * (size_t)edges * sizeof *indices);
  static int64_t offsets[2][VERTICES + 1];
  const eman_mutable_view o = output(offsets[0], VERTICES + 1, 1, EMAN_INT64),
                          n = output(indices, edges, 1, EMAN_INT32),
                          lo = output(offsets[1], VERTICES + 1, 1, EMAN_INT64),
                          ln = output(indices + edges, edges, 1, EMAN_INT32);
  require("neighbours", eman_mesh_neighbors(mesh, &o, &n) == EMAN_OK);
  require("of a layer", eman_model_layer_neighbors(model, mesh, 0, NULL, &lo, &ln) == EMAN_OK);
  require("the same", memcmp(offsets[0], offsets[1], sizeof offsets[0]) == 0 &&
                          memcmp(indices, indices + edges, (size_t)edges * sizeof *indices) == 0);
  static double places[POINTS][3];
  const eman_mutable_view p = output(places, POINTS, 3, EMAN_FLOAT64);
  refused("no samples", eman_model_samples(model, mesh, NULL, &p, &p), EMAN_E_INVALID_ARGUMENT, "vertices");
  free(indices);
  eman_model_free(model);
}

static int32_t stop(void *user, double fraction) {
  *(double *)user = fraction;
  return fraction > 0.05;
}

/* Samples are kept until the mesh changes, memory runs short or is asked for. */
static void kept(const eman_model *model) {
  eman_mesh *mesh = make_mesh(context);
  static int32_t first[VERTICES], again[VERTICES];
  eman_control control;
  double last = -1;
  int64_t rows, edges;
  require("init", eman_control_init(&control, sizeof control) == EMAN_OK);
  control.progress = stop;
  control.user = &last;
  require("trim", eman_trim() == EMAN_OK);
  const int64_t bare = used();
  refused("stopped", eman_model_layer_size(model, mesh, 0, &control, &rows, &edges), EMAN_E_CANCELLED, "cancel");
  require("in the middle of the sampling", last > 0.05 && last < 0.1 && used() == bare);
  predict("first", model, mesh, first);
  const int64_t with = used();
  predict("again", model, mesh, again);
  require("the same labels, and no more memory", different(first, again) == 0 && with > bare && used() == with);
  last = -1;
  require("at once", eman_model_layer_size(model, mesh, 0, &control, &rows, &edges) == EMAN_OK && last == -1);
  require("trim", eman_trim() == EMAN_OK);
  require("given back", used() == bare);
  predict("a third time", model, mesh, again);
  require("the same labels", different(first, again) == 0);

  for (int v = 0; v < VERTICES; v++) positions[v][2] *= -1.5;
  const eman_view p = view(positions, VERTICES, 3, EMAN_FLOAT64);
  require("update", eman_mesh_update(mesh, &p, NULL, NULL) == EMAN_OK);
  predict("of another shape", model, mesh, again);
  require("other labels", different(first, again) > 0);
  fill(6);
  eman_mesh_free(mesh);
}

/* Labels four meshes of a context of its own, all of which live on; returns what
 * it took. */
static eman_context_info label_four(const eman_model *model, int64_t limit) {
  static int32_t labels[VERTICES];
  eman_context_info info = {.struct_size = sizeof info};
  eman_context_options o;
  eman_context *own = NULL;
  eman_mesh *meshes[4];
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.memory_limit = limit;
  require("context", eman_context_create(&o, &own) == EMAN_OK);
  for (int i = 0; i < 4; i++) meshes[i] = make_mesh(own);
  for (int i = 0; i < 4; i++) predict("one of four", model, meshes[i], labels);
  require("describe", eman_context_describe(own, &info) == EMAN_OK);
  for (int i = 0; i < 4; i++) eman_mesh_free(meshes[i]);
  eman_context_free(own);
  return info;
}

/* Samples that are kept make room before memory is refused. */
static void makes_room(const eman_model *model) {
  eman_mesh *mesh = make_mesh(context);
  require("trim", eman_trim() == EMAN_OK);
  const int64_t bare = used();
  int64_t rows, edges;
  require("size", eman_model_layer_size(model, mesh, 0, NULL, &rows, &edges) == EMAN_OK);
  const int64_t samples_of_one = used() - bare;
  eman_mesh_free(mesh);
  const eman_context_info wide = label_four(model, 0);
  const eman_context_info narrow = label_four(model, wide.memory_peak - 2 * samples_of_one);
  require("with less memory", narrow.memory_peak <= wide.memory_peak - 2 * samples_of_one);
}

/* Points with normals, no faces. */
static void clouds(const eman_model *model, const eman_mesh *mesh) {
  const eman_view p = view(positions, VERTICES, 3, EMAN_FLOAT64), none = view(NULL, 0, 3, EMAN_INT32),
                  f = view(frames, VERTICES, 9, EMAN_FLOAT64);
  eman_mesh_options o;
  eman_mesh *cloud = NULL, *bare = NULL, *moved = NULL;
  require("init", eman_mesh_options_init(&o, sizeof o) == EMAN_OK);
  require("no normals", eman_mesh_create(context, &p, &none, &o, NULL, &bare) == EMAN_OK);
  o.gauge = EMAN_GAUGE_CUSTOM;
  o.frames = &f;
  require("cloud", eman_mesh_create(context, &p, &none, &o, NULL, &cloud) == EMAN_OK);
  static int32_t labels[VERTICES], turned[VERTICES], of_mesh[VERTICES];
  const eman_mutable_view y = output(labels, VERTICES, 1, EMAN_INT32);
  refused("nothing to sample", eman_model_predict(model, bare, NULL, &y), EMAN_E_INVALID_MESH, "normal");
  predict("labels of a cloud", model, cloud, labels);
  const double translation[3] = {1, 2, 3};
  double rotation[9];
  require("rotation", eman_random_rotation(5, rotation) == EMAN_OK);
  require("moved", eman_mesh_transform(cloud, rotation, translation, 40, NULL, &moved) == EMAN_OK);
  predict("labels of a moved cloud", model, moved, turned);
  require("the same labels", different(labels, turned) == 0);
  predict("labels of the mesh", model, mesh, of_mesh);
  require("much as those of the mesh", different(labels, of_mesh) < VERTICES / 4);
  eman_mesh_free(moved);
  eman_mesh_free(cloud);
  eman_mesh_free(bare);
}

/* Two steps, on other samples and shapes each; the memory is that of the estimate. */
static void trains(const eman_model *model) {
  static int32_t labels[VERTICES];
  for (int v = 0; v < VERTICES; v++) labels[v] = v / SIDE * CLASSES / SIDE;
  const eman_view known = view(labels, VERTICES, 1, EMAN_INT32);
  eman_trainer *trainer = NULL;
  eman_mesh *mesh = make_mesh(context);
  require("trainer",
          eman_trainer_create(context, model, "{\"epochs\": 2, \"augment\": {\"resample\": true, \"warp\": 0.02}}",
                              &trainer) == EMAN_OK);
  require("add", eman_trainer_add_mesh(trainer, mesh, &known, "sheet", 0) == EMAN_OK);
  int64_t vertices, count, edges, bytes = 0;
  require("counts", eman_mesh_counts(mesh, &vertices, &count, &edges) == EMAN_OK);
  require("estimate", eman_trainer_estimate(trainer, vertices, edges, &bytes) == EMAN_OK && bytes > 0);
  refused("estimate", eman_trainer_estimate(trainer, vertices, -1, &bytes), EMAN_E_INVALID_ARGUMENT, "edges");
  eman_work step = {.struct_size = sizeof step}, call = {.struct_size = sizeof call};
  require("work", eman_trainer_estimate_work(trainer, vertices, edges, &step) == EMAN_OK &&
                      eman_model_estimate_work(model, vertices, edges, &call) == EMAN_OK);
  require("three passes", step.flops == 3 * call.flops && step.seconds > call.seconds);
  require("trim", eman_trim() == EMAN_OK);
  const int64_t before = used();
  double losses[2];
  for (int i = 0; i < 2; i++) {
    eman_step_info info = {.struct_size = sizeof info};
    require("step", eman_trainer_step(trainer, NULL, &info) == EMAN_OK && info.step == i + 1);
    losses[i] = info.loss;
    require("memory between steps", used() - before <= bytes);
  }
  require("it learns", losses[1] < losses[0]);
  eman_trainer_free(trainer);
  eman_mesh_free(mesh);
}

int main(void) {
  require("context", eman_context_create(NULL, &context) == EMAN_OK);
  fill(6);
  eman_model *model = make_model(description);
  eman_mesh *mesh = make_mesh(context);
  layers(model, mesh);
  samples(model, mesh);
  on_vertices(mesh);
  kept(model);
  makes_room(model);
  clouds(model, mesh);
  trains(model);
  eman_mesh_free(mesh);
  eman_model_free(model);
  require("trim", eman_trim() == EMAN_OK);
  require("nothing is left", used() == 0);
  eman_context_free(context);
  printf("%d failures\n", failures);
  return failures > 0;
}
