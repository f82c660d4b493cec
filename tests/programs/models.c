/* Models through the C interface: results, round trips, bad input. The exit
 * status is 1 if a check failed. */
#define _GNU_SOURCE
#include <eman.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERTICES = 12, FACES = 20, CLASSES = 5 };

static int failures;
static eman_context *context;
static eman_mesh *mesh;

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

static eman_mutable_view floats(float *data, int64_t rows, int64_t columns) {
  const eman_mutable_view v = {data, rows, columns, 0, 0, EMAN_FLOAT32, 0};
  return v;
}

static eman_mutable_view labels_view(int32_t *data, int64_t rows, int64_t columns) {
  const eman_mutable_view v = {data, rows, columns, 0, 0, EMAN_INT32, 0};
  return v;
}

static void make_mesh(void) {
  static const double phi = 1.6180339887498949;
  static const int32_t faces[FACES][3] = {
      {0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
      {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
      {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1},
  };
  const double positions[VERTICES][3] = {
      {-1, phi, 0},  {1, phi, 0},  {-1, -phi, 0}, {1, -phi, 0},  {0, -1, phi},  {0, 1, phi},
      {0, -1, -phi}, {0, 1, -phi}, {phi, 0, -1},  {2, 0.2, 1.5}, {-phi, 0, -1}, {-phi, 0, 1},
  };
  const eman_view p = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, FACES, 3, 0, 0, EMAN_INT32, 0};
  require("mesh", eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) == EMAN_OK);
}

static eman_model *create(const char *description) {
  eman_model *model = NULL;
  require(description, eman_model_create(context, description, 7, &model) == EMAN_OK);
  return model;
}

static const char *const descriptions[] = {
    "{\"classes\": 5, \"hidden\": 32}",
    "{\"preset\": \"paper\", \"classes\": 5, \"hidden\": 32}",
    "{\"preset\": \"authors\", \"classes\": 5, \"hidden\": 32}",
    "{\"kind\": \"gem\", \"classes\": 5, \"hidden\": 32, \"features\": \"get\"}",
    "{\"kind\": \"spiral\", \"classes\": 5, \"hidden\": 32}",
};

/* Labels, top-k and logits of one model agree, and a copy by memory gives the same bits. */
static void agree(const char *description) {
  eman_model *model = create(description), *copy = NULL;
  float logits[VERTICES][CLASSES], again[VERTICES][CLASSES], probabilities[VERTICES][2];
  int32_t labels[VERTICES], best[VERTICES][2];
  eman_mutable_view l = floats(*logits, VERTICES, CLASSES), a = floats(*again, VERTICES, CLASSES);
  eman_mutable_view p = floats(*probabilities, VERTICES, 2), y = labels_view(labels, VERTICES, 1),
                    b = labels_view(*best, VERTICES, 2);
  require("logits", eman_model_logits(model, mesh, NULL, &l) == EMAN_OK);
  require("predict", eman_model_predict(model, mesh, NULL, &y) == EMAN_OK);
  require("top", eman_model_top(model, mesh, 2, NULL, &b, &p) == EMAN_OK);
  for (int v = 0; v < VERTICES; v++) {
    int largest = 0;
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
      sum += exp(logits[v][c]);
      if (logits[v][c] > logits[v][largest]) largest = c;
    }
    require("log-probabilities", fabs(sum - 1) < 1e-5);
    require("labels are the most probable", labels[v] == largest && best[v][0] == largest);
    require("probabilities", fabs(probabilities[v][0] - exp(logits[v][largest])) < 1e-5);
    require("in falling order", probabilities[v][0] >= probabilities[v][1]);
  }
  int64_t size = 0;
  refused("no room", eman_model_save_memory(model, NULL, 0, &size), EMAN_E_BUFFER_TOO_SMALL, "data");
  void *file = malloc((size_t)size);
  require("save", eman_model_save_memory(model, file, size, &size) == EMAN_OK);
  require("load", eman_model_load_memory(context, file, size, &copy) == EMAN_OK);
  require("logits of the copy", eman_model_logits(copy, mesh, NULL, &a) == EMAN_OK);
  require("same bits", memcmp(logits, again, sizeof logits) == 0);

  /* into an array with strides, of doubles */
  double wide[VERTICES][CLASSES + 3];
  const eman_mutable_view w = {wide, VERTICES, CLASSES, sizeof *wide, 0, EMAN_FLOAT64, 0};
  require("logits with strides", eman_model_logits(model, mesh, NULL, &w) == EMAN_OK);
  for (int v = 0; v < VERTICES; v++)
    for (int c = 0; c < CLASSES; c++) require("the same numbers", wide[v][c] == logits[v][c]);

  free(file);
  eman_model_free(copy);
  eman_model_free(model);
}

static void files(void) {
  eman_model *model = create(descriptions[0]), *read = NULL;
  char path[] = "/tmp/eman-models-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) abort();
  close(fd);
  require("save", eman_model_save(model, path) == EMAN_OK);
  struct stat before, after;
  char link_path[] = "/tmp/eman-models-link", pipe_path[] = "/tmp/eman-models-pipe";
  unlink(link_path);
  unlink(pipe_path);
  if (symlink(path, link_path) != 0 || chmod(path, 0640) != 0 || mkfifo(pipe_path, 0600) != 0) abort();
  if (stat(path, &before) != 0) abort();
  require("save through a link", eman_model_save(model, link_path) == EMAN_OK);
  require("the link stays", lstat(link_path, &after) == 0 && S_ISLNK(after.st_mode));
  require("the mode stays", stat(path, &after) == 0 && after.st_mode == before.st_mode);
  refused("a pipe", eman_model_load(context, pipe_path, &read), EMAN_E_IO, pipe_path);
  unlink(link_path);
  unlink(pipe_path);
  require("load", eman_model_load(context, path, &read) == EMAN_OK);
  eman_model_free(read);
  read = NULL;
  refused("no such folder", eman_model_save(model, "/nonexistent/model"), EMAN_E_IO, "/nonexistent/model");
  refused("no such file", eman_model_load(context, "/nonexistent/model", &read), EMAN_E_IO, "/nonexistent/model");
  refused("a folder", eman_model_load(context, "/", &read), EMAN_E_IO, "/");
  refused("a device", eman_model_load(context, "/dev/zero", &read), EMAN_E_IO, "/dev/zero");
  refused("onto a folder", eman_model_save(model, "/tmp"), EMAN_E_IO, "/tmp");
  refused("onto a device", eman_model_save(model, "/dev/null"), EMAN_E_IO, "/dev/null");
  refused("nowhere", eman_model_save(model, ""), EMAN_E_IO, "");
  refused("no UTF-8", eman_model_load(context, "\xff\xfe", &read), EMAN_E_INVALID_ARGUMENT, "path");
  unlink(path);

  int64_t size = 0;
  if (eman_model_save_memory(model, NULL, 0, &size) == EMAN_OK) abort();
  char *file = malloc((size_t)size);
  require("save", eman_model_save_memory(model, file, size, &size) == EMAN_OK);
  for (int64_t cut = 0; cut < size; cut += cut < 12000 ? 1 : 997)
    refused("truncated", eman_model_load_memory(context, file, cut, &read), EMAN_E_INVALID_MODEL, "");
  const float nan = NAN;
  memcpy(file + size - 4, &nan, 4);
  refused("NaN", eman_model_load_memory(context, file, size, &read), EMAN_E_INVALID_MODEL, "dense2");
  refused("negative size", eman_model_load_memory(context, file, -1, &read), EMAN_E_INVALID_ARGUMENT, "size");
  require("no model was made", read == NULL);
  free(file);
  eman_model_free(model);
}

static void bad_descriptions(void) {
  static const char *const bad[][2] = {
      {"", "description"},
      {"[]", "description"},
      {"{\"classes\": 0}", "classes"},
      {"{\"classes\": 5, \"colour\": 1}", "colour"},
      {"{\"classes\": \"five\"}", "classes"},
      {"{\"classes\": 5, \"max_order\": 9}", "max_order"},
      {"{\"classes\": 5, \"heads\": 3}", "heads"},
      {"{\"classes\": 5, \"preset\": \"best\"}", "preset"},
      {"{\"classes\": 5, \"width\": 2000000000, \"hidden\": 2000000000}", "width"},
      {"{\"classes\": 5} x", "description"},
  };
  eman_model *model = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refused(bad[i][0], eman_model_create(context, bad[i][0], 0, &model), EMAN_E_INVALID_MODEL, bad[i][1]);
  require("no model was made", model == NULL);
}

static void parameters(void) {
  eman_model *model = create(descriptions[0]);
  int32_t count = 0;
  require("count", eman_model_parameter_count(model, &count) == EMAN_OK && count > 4);
  eman_parameter_info info = {.struct_size = sizeof info};
  int32_t bias = -1;
  for (int32_t i = 0; i < count; i++) {
    require("describe", eman_model_describe_parameter(model, i, &info) == EMAN_OK);
    if (strcmp(info.name, "dense2.bias") == 0) bias = i;
  }
  require("dense2.bias is there", bias >= 0);
  require("its shape", eman_model_describe_parameter(model, bias, &info) == EMAN_OK && info.rank == 1 &&
                           info.shape[0] == CLASSES && info.shape[1] == 1 && info.size == CLASSES);
  refused("index", eman_model_describe_parameter(model, count, &info), EMAN_E_INVALID_ARGUMENT, "index");

  double values[CLASSES] = {0, 0, 100, 0, 0};
  const int64_t shape[1] = {CLASSES}, wrong[1] = {CLASSES + 1}, overflow[3] = {1 << 30, 1 << 30, 1 << 30};
  eman_tensor tensor = {"dense2.bias", values, shape, 1, EMAN_FLOAT64};
  require("set", eman_model_set_parameters(model, &tensor, 1) == EMAN_OK);
  float got[CLASSES];
  const eman_mutable_view out = floats(got, CLASSES, 1);
  require("get", eman_model_get_parameter(model, bias, &out) == EMAN_OK && got[2] == 100 && got[0] == 0);
  int32_t labels[VERTICES];
  const eman_mutable_view y = labels_view(labels, VERTICES, 1);
  require("predict", eman_model_predict(model, mesh, NULL, &y) == EMAN_OK);
  for (int v = 0; v < VERTICES; v++) require("the new parameters count", labels[v] == 2);

  tensor.shape = wrong;
  double more[CLASSES + 1] = {0};
  tensor.data = more;
  refused("shape", eman_model_set_parameters(model, &tensor, 1), EMAN_E_INVALID_MODEL, "dense2.bias");
  tensor.shape = overflow;
  tensor.rank = 3;
  refused("overflow", eman_model_set_parameters(model, &tensor, 1), EMAN_E_INVALID_ARGUMENT, "dense2.bias");
  tensor.rank = 99;
  refused("rank", eman_model_set_parameters(model, &tensor, 1), EMAN_E_INVALID_ARGUMENT, "rank");
  tensor.rank = 1;
  tensor.shape = shape;
  tensor.data = values;
  tensor.name = "dense9.bias";
  refused("name", eman_model_set_parameters(model, &tensor, 1), EMAN_E_INVALID_MODEL, "dense9.bias");
  tensor.name = "dense2.bias";
  values[1] = INFINITY;
  refused("infinite", eman_model_set_parameters(model, &tensor, 1), EMAN_E_INVALID_MODEL, "dense2.bias");
  require("nothing changed", eman_model_get_parameter(model, bias, &out) == EMAN_OK && got[2] == 100 && got[1] == 0);
  values[1] = 0;
  const eman_tensor twice[2] = {tensor, tensor};
  refused("twice", eman_model_set_parameters(model, twice, 2), EMAN_E_INVALID_MODEL, "dense2.bias");
  refused("count", eman_model_set_parameters(model, &tensor, -1), EMAN_E_INVALID_ARGUMENT, "count");
  eman_model_free(model);
}

static int32_t stop_late(void *user, double fraction) {
  *(double *)user = fraction;
  return fraction > 0.5;
}

static void calls(void) {
  eman_model *model = create(descriptions[0]), *gem = create(descriptions[3]);
  eman_layer_info layer = {.struct_size = sizeof layer};
  int32_t layers = 0;
  require("layers", eman_model_layer_count(model, &layers) == EMAN_OK && layers == 6);
  require("layer", eman_model_describe_layer(model, 1, &layer) == EMAN_OK && layer.heads == 1 && layer.order == 2);

  int64_t vertices, faces, edges;
  require("counts", eman_mesh_counts(mesh, &vertices, &faces, &edges) == EMAN_OK);
  float attention[200], features[VERTICES * 16 * 5];
  const eman_mutable_view a = floats(attention, edges, 1), f = floats(features, VERTICES, 16 * 5);
  require("attention", eman_model_attention(model, mesh, 1, NULL, &a) == EMAN_OK);
  for (int64_t e = 0; e < edges; e += 5) { /* an icosahedron: five neighbours each */
    float sum = 0;
    for (int k = 0; k < 5; k++) sum += attention[e + k];
    require("attention adds up to N_p", fabsf(sum - 5) < 1e-4f);
  }
  require("features", eman_model_features(model, mesh, 1, NULL, &f) == EMAN_OK);
  refused("no attention", eman_model_attention(gem, mesh, 1, NULL, &a), EMAN_E_INVALID_ARGUMENT, "attention");
  refused("layer", eman_model_attention(model, mesh, 6, NULL, &a), EMAN_E_INVALID_ARGUMENT, "layer");
  refused("layer", eman_model_features(model, mesh, -1, NULL, &f), EMAN_E_INVALID_ARGUMENT, "layer");

  int32_t labels[VERTICES] = {-9};
  eman_mutable_view y = labels_view(labels, VERTICES - 1, 1);
  refused("room", eman_model_predict(model, mesh, NULL, &y), EMAN_E_BUFFER_TOO_SMALL, "12 are needed");
  y.rows = VERTICES;
  eman_control control;
  double last = 0;
  volatile int32_t cancel = 1;
  require("init", eman_control_init(&control, sizeof control) == EMAN_OK);
  control.cancel = &cancel;
  refused("cancel", eman_model_predict(model, mesh, &control, &y), EMAN_E_CANCELLED, "cancel");
  cancel = 0;
  control.progress = stop_late;
  control.user = &last;
  refused("progress", eman_model_predict(model, mesh, &control, &y), EMAN_E_CANCELLED, "cancel");
  require("half of it was done", last > 0.5 && last < 1);
  require("labels are untouched", labels[0] == -9);
  float p[VERTICES * 6];
  int32_t best[VERTICES * 6];
  const eman_mutable_view pv = floats(p, VERTICES, 6), bv = labels_view(best, VERTICES, 6);
  refused("k", eman_model_top(model, mesh, 6, NULL, &bv, &pv), EMAN_E_INVALID_ARGUMENT, "k is 6");
  int64_t bytes = 0;
  require("estimate", eman_model_estimate(model, 6890, 41328, &bytes) == EMAN_OK && bytes > 1000000);
  refused("estimate", eman_model_estimate(model, -1, 0, &bytes), EMAN_E_INVALID_ARGUMENT, "vertices");
  eman_work work = {.struct_size = sizeof work};
  require("work", eman_model_estimate_work(model, 6890, 41328, &work) == EMAN_OK && work.flops > 1e6);
  require("seconds", work.seconds > 0 && work.seconds < 1000);
  refused("work", eman_model_estimate_work(model, 0, -1, &work), EMAN_E_INVALID_ARGUMENT, "edges");
  work.struct_size = 3;
  refused("work", eman_model_estimate_work(model, 1, 1, &work), EMAN_E_INVALID_ARGUMENT, "work.struct_size is 3");

  eman_model *whole =
      create("{\"classes\": 5, \"task\": \"classification\", \"labels\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}");
  float row[CLASSES];
  const eman_mutable_view one = floats(row, 1, CLASSES);
  y.rows = 1;
  require("one row", eman_model_logits(whole, mesh, NULL, &one) == EMAN_OK);
  require("one label", eman_model_predict(whole, mesh, NULL, &y) == EMAN_OK && labels[0] >= 0 && labels[0] < CLASSES);
  eman_mesh *none = NULL;
  const eman_view nothing_p = {NULL, 0, 3, 0, 0, EMAN_FLOAT64, 0}, nothing_f = {NULL, 0, 3, 0, 0, EMAN_INT32, 0};
  require("a mesh of nothing", eman_mesh_create(context, &nothing_p, &nothing_f, NULL, NULL, &none) == EMAN_OK);
  refused("its class", eman_model_predict(whole, none, NULL, &y), EMAN_E_INVALID_ARGUMENT, "vertices");
  y.rows = 0;
  require("its labels", eman_model_predict(model, none, NULL, &y) == EMAN_OK);
  eman_mesh_free(none);
  eman_model_free(whole);
  eman_model_free(gem);
  eman_model_free(model);
}

/* An update of the mesh counts in the next call, and only in that. */
static void updates(void) {
  eman_model *model = create(descriptions[0]);
  double positions[VERTICES][3];
  float before[VERTICES][CLASSES], moved[VERTICES][CLASSES], back[VERTICES][CLASSES];
  const eman_mutable_view p = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0}, b = floats(*before, VERTICES, CLASSES),
                          m = floats(*moved, VERTICES, CLASSES), k = floats(*back, VERTICES, CLASSES);
  eman_view update = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0};
  require("positions", eman_mesh_positions(mesh, &p) == EMAN_OK);
  require("before", eman_model_logits(model, mesh, NULL, &b) == EMAN_OK);
  positions[3][1] -= 2;
  require("update", eman_mesh_update(mesh, &update, NULL, NULL) == EMAN_OK);
  require("moved", eman_model_logits(model, mesh, NULL, &m) == EMAN_OK);
  positions[3][1] += 2;
  require("update", eman_mesh_update(mesh, &update, NULL, NULL) == EMAN_OK);
  require("back", eman_model_logits(model, mesh, NULL, &k) == EMAN_OK);
  require("the network sees the update", memcmp(before, moved, sizeof before) != 0);
  require("and the way back", memcmp(before, back, sizeof before) == 0);
  eman_model_free(model);
}

/* A context's limit holds for models too, however they are made. */
static void limits(void) {
  eman_model *model = create(descriptions[0]), *other = NULL;
  int64_t size = 0;
  if (eman_model_save_memory(model, NULL, 0, &size) == EMAN_OK) abort();
  char *file = malloc((size_t)size);
  require("save", eman_model_save_memory(model, file, size, &size) == EMAN_OK);
  eman_context_options o;
  eman_context *small = NULL;
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.memory_limit = 10000;
  require("a small context", eman_context_create(&o, &small) == EMAN_OK);
  refused("create", eman_model_create(small, descriptions[0], 0, &other), EMAN_E_NOMEM, "limit of 10000");
  refused("load", eman_model_load_memory(small, file, size, &other), EMAN_E_NOMEM, "limit of 10000");
  eman_context_free(small);
  free(file);
  eman_model_free(model);
}

/* Where EMAN_TEST_ISA names the kernels that must have been chosen, they are. */
static void expected_kernels(void) {
  char information[1024] = "";
  int64_t length;
  const char *const name = getenv("EMAN_TEST_ISA");
  require("build information", eman_build_info(information, sizeof information, &length) == EMAN_OK);
  require("the expected kernels", name == NULL || strstr(information, name) != NULL);
}

int main(void) {
  require("context", eman_context_create(NULL, &context) == EMAN_OK);
  expected_kernels();
  make_mesh();
  for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++) agree(descriptions[i]);
  files();
  limits();
  bad_descriptions();
  parameters();
  calls();
  updates();
  eman_mesh_free(mesh);
  require("trim", eman_trim() == EMAN_OK);
  eman_context_info info = {.struct_size = sizeof info};
  require("describe", eman_context_describe(context, &info) == EMAN_OK);
  require("nothing is left", info.memory_used == 0);
  eman_context_free(context);
  printf("%d failures\n", failures);
  return failures > 0;
}
