/* Training through the C interface: a training that goes on where it was
 * stopped, what may be called in the middle of it, bad input. The exit status
 * is 1 if a check failed. */
#define _GNU_SOURCE
#include <eman.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 14, VERTICES = SIDE * SIDE, FACES = 2 * (SIDE - 1) * (SIDE - 1), CLASSES = 3 };

static const char *const training = "{\"epochs\": 3, \"seed\": 4}";

static int failures;
static eman_context *context;
static eman_model *model;
static int32_t labels[VERTICES];

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

static eman_mesh *make_mesh(eman_context *in, double bump) {
  static double positions[VERTICES][3];
  static int32_t faces[FACES][3];
  int f = 0;
  for (int i = 0; i < SIDE; i++) {
    for (int j = 0; j < SIDE; j++) {
      const int a = i * SIDE + j;
      positions[a][0] = i + 0.2 * sin(3.0 * j);
      positions[a][1] = j + 0.1 * cos(5.0 * i);
      positions[a][2] = exp(-0.1 * ((i - bump) * (i - bump) + (j - 6.0) * (j - 6.0)));
      if (i + 1 == SIDE || j + 1 == SIDE) continue;
      const int32_t pair[2][3] = {{a, a + SIDE, a + SIDE + 1}, {a, a + SIDE + 1, a + 1}};
      memcpy(faces[f], pair, sizeof pair);
      f += 2;
    }
  }
  const eman_view p = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0}, t = {faces, FACES, 3, 0, 0, EMAN_INT32, 0};
  eman_mesh *mesh = NULL;
  require("mesh", eman_mesh_create(in, &p, &t, NULL, NULL, &mesh) == EMAN_OK);
  return mesh;
}

static eman_view labels_view(void) {
  const eman_view v = {labels, VERTICES, 1, 0, 0, EMAN_INT32, 0};
  return v;
}

/* Meshes are freed at once: the training has its own. */
static void add_meshes(eman_trainer *trainer, eman_context *in) {
  const eman_view known = labels_view();
  for (int i = 0; i < 4; i++) {
    eman_mesh *mesh = make_mesh(in, 3 + 2 * i);
    require("add", eman_trainer_add_mesh(trainer, mesh, &known, i == 1 ? NULL : "sheet", i == 3) == EMAN_OK);
    eman_mesh_free(mesh);
  }
}

static eman_trainer *create(void) {
  eman_trainer *trainer = NULL;
  require("trainer", eman_trainer_create(context, model, training, &trainer) == EMAN_OK);
  add_meshes(trainer, context);
  return trainer;
}

static int64_t parameters_of(eman_trainer *trainer, void *file, int64_t capacity) {
  eman_model *trained = NULL;
  int64_t size = 0;
  require("model", eman_trainer_model(trainer, 0, &trained) == EMAN_OK);
  const eman_status status = eman_model_save_memory(trained, file, capacity, &size);
  require("encode", file == NULL || status == EMAN_OK);
  eman_model_free(trained);
  return size;
}

static void same_bits(const char *what, eman_trainer *one, eman_trainer *other) {
  const int64_t size = parameters_of(one, NULL, 0);
  char *a = malloc((size_t)size), *b = malloc((size_t)size);
  parameters_of(one, a, size);
  parameters_of(other, b, size);
  require(what, memcmp(a, b, (size_t)size) == 0);
  free(a);
  free(b);
}

/* ------------------------------------------------------------------ in the middle of a run */

typedef struct host {
  eman_trainer *trainer;
  const char *path;
  int calls, stop_at;
  double last_loss;
} host;

static int32_t on_step(void *user, const eman_step_info *info) {
  host *h = user;
  h->calls++;
  require("size", info->struct_size == sizeof *info);
  require("numbers", isfinite(info->loss) && info->accuracy >= 0 && info->accuracy <= 1 && info->learning_rate == 0.01);
  require("steps", info->steps == 9 && info->step >= 1 && info->step <= 9 && info->epoch == 1 + (info->step - 1) / 3);
  require("epochs", info->epoch_ended == (info->step % 3 == 0) && info->validated == info->epoch_ended);
  h->last_loss = info->loss;
  if (h->stop_at != h->calls) return 0;

  eman_step_info again = {.struct_size = sizeof again};
  const eman_view known = labels_view();
  eman_mesh *mesh = make_mesh(context, 1);
  refused("run within a run", eman_trainer_run(h->trainer, NULL, NULL, NULL), EMAN_E_INVALID_ARGUMENT, "in progress");
  refused("step within a run", eman_trainer_step(h->trainer, NULL, &again), EMAN_E_INVALID_ARGUMENT, "in progress");
  refused("a mesh within a run", eman_trainer_add_mesh(h->trainer, mesh, &known, NULL, 0), EMAN_E_INVALID_ARGUMENT,
          "in progress");
  eman_mesh_free(mesh);
  require("save within a run", eman_trainer_save(h->trainer, h->path) == EMAN_OK);
  char state[4096];
  int64_t length = 0;
  require("state within a run", eman_trainer_state(h->trainer, state, sizeof state, &length) == EMAN_OK);
  require("state", strstr(state, "\"done\":false") != NULL && strstr(state, "\"epoch\":1,") != NULL);
  return 1;
}

static void resumption(const char *path) {
  eman_trainer *whole = create(), *part = create(), *resumed = NULL;
  host all = {whole, path, 0, -1, 0}, stopped = {part, path, 0, 4, 0};
  require("run", eman_trainer_run(whole, NULL, on_step, &all) == EMAN_OK && all.calls == 9);
  refused("after the end", eman_trainer_step(whole, NULL, &(eman_step_info){.struct_size = sizeof(eman_step_info)}),
          EMAN_E_INVALID_ARGUMENT, "end");
  refused("stopped", eman_trainer_run(part, NULL, on_step, &stopped), EMAN_E_CANCELLED, "");
  require("stopped at the fourth step", stopped.calls == 4);
  require("load", eman_trainer_load(context, path, &resumed) == EMAN_OK);
  add_meshes(resumed, context);
  require("go on", eman_trainer_run(part, NULL, NULL, NULL) == EMAN_OK);
  eman_step_info info = {.struct_size = sizeof info};
  for (int step = 5; step <= 9; step++) {
    require("step", eman_trainer_step(resumed, NULL, &info) == EMAN_OK && info.step == step);
  }
  require("the last loss", info.loss == all.last_loss);
  same_bits("a stopped training ends with the same bits", whole, part);
  same_bits("a resumed training ends with the same bits", whole, resumed);
  eman_trainer_free(resumed);

  /* the same on one thread */
  eman_context_options options;
  require("options", eman_context_options_init(&options, sizeof options) == EMAN_OK);
  options.threads = 1;
  eman_context *single = NULL;
  require("context", eman_context_create(&options, &single) == EMAN_OK);
  eman_trainer *alone = NULL;
  require("trainer", eman_trainer_create(single, model, training, &alone) == EMAN_OK);
  add_meshes(alone, single);
  eman_context_free(single);
  require("run on one thread", eman_trainer_run(alone, NULL, NULL, NULL) == EMAN_OK);
  same_bits("one thread gives the same bits", whole, alone);
  eman_trainer_free(alone);
  eman_trainer_free(whole);
  eman_trainer_free(part);
}

/* ------------------------------------------------------------------ bad input */

static void bad_input(const char *path) {
  eman_trainer *trainer = NULL;
  const char *const bad[][2] = {
      {"", "training"},
      {"{\"epochs\": 0}", "epochs"},
      {"{\"epoch\": 3}", "epoch"},
      {"{\"seed\": -1}", "seed"},
      {"{\"class_weights\": [1]}", "class_weights"},
      {"{\"frozen\": [\"x\"]}", "frozen"},
      {"{\"schedule\": \"up\"}", "schedule"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refused(bad[i][0], eman_trainer_create(context, model, bad[i][0], &trainer), EMAN_E_INVALID_ARGUMENT, bad[i][1]);
  refused("a model that is a context", eman_trainer_create(context, (eman_model *)context, training, &trainer),
          EMAN_E_INVALID_ARGUMENT, "model");
  refused("no file", eman_trainer_load(context, "/nonexistent", &trainer), EMAN_E_IO, "/nonexistent");
  require("save a model", eman_model_save(model, path) == EMAN_OK);
  refused("a model file", eman_trainer_load(context, path, &trainer), EMAN_E_INVALID_MODEL, "format");

  require("trainer", eman_trainer_create(context, model, training, &trainer) == EMAN_OK);
  refused("nothing to learn", eman_trainer_run(trainer, NULL, NULL, NULL), EMAN_E_INVALID_ARGUMENT, "labels");
  eman_mesh *mesh = make_mesh(context, 2);
  eman_view known = labels_view();
  const int32_t kept = labels[7];
  labels[7] = CLASSES;
  refused("a label too large", eman_trainer_add_mesh(trainer, mesh, &known, "cat.ply", 0), EMAN_E_INVALID_ARGUMENT,
          "cat.ply: labels: label 7 is 3");
  labels[7] = -2;
  refused("a label below -1", eman_trainer_add_mesh(trainer, mesh, &known, NULL, 0), EMAN_E_INVALID_ARGUMENT,
          "label 7");
  labels[7] = kept;
  refused("validation", eman_trainer_add_mesh(trainer, mesh, &known, NULL, 2), EMAN_E_INVALID_ARGUMENT, "validation");
  refused("a name without end", eman_trainer_add_mesh(trainer, mesh, &known, "\xff", 0), EMAN_E_INVALID_ARGUMENT,
          "name");
  known.rows--;
  refused("too few labels", eman_trainer_add_mesh(trainer, mesh, &known, NULL, 0), EMAN_E_INVALID_ARGUMENT, "labels");
  const int64_t huge[VERTICES] = {1LL << 40};
  const eman_view wide = {huge, VERTICES, 1, 0, 0, EMAN_INT64, 0};
  refused("a huge label", eman_trainer_add_mesh(trainer, mesh, &wide, NULL, 0), EMAN_E_INVALID_ARGUMENT, "label 0");
  refused("best", eman_trainer_model(trainer, 7, &(eman_model *){NULL}), EMAN_E_INVALID_ARGUMENT, "best");
  refused("a trainer that is a mesh", eman_trainer_save((eman_trainer *)mesh, path), EMAN_E_INVALID_ARGUMENT, "mesh");
  refused("no such folder", eman_trainer_save(trainer, "/nonexistent/state"), EMAN_E_IO, "/nonexistent/state");

  eman_evaluation e = {.struct_size = sizeof e};
  known = labels_view();
  int64_t confusion[CLASSES][CLASSES], total = 0, diagonal = 0;
  const eman_mutable_view table = {confusion, CLASSES, CLASSES, 0, 0, EMAN_INT64, 0};
  require("evaluate", eman_model_evaluate(model, mesh, &known, NULL, &e, &table) == EMAN_OK);
  for (int i = 0; i < CLASSES; i++) {
    diagonal += confusion[i][i];
    for (int j = 0; j < CLASSES; j++) total += confusion[i][j];
  }
  require("confusion", total == e.labels && diagonal == e.correct && e.labels == VERTICES && isfinite(e.loss));
  e.struct_size = 2;
  refused("a size", eman_model_evaluate(model, mesh, &known, NULL, &e, NULL), EMAN_E_INVALID_ARGUMENT, "struct_size");
  eman_mesh_free(mesh);
  eman_trainer_free(trainer);
}

/* A rate of a million: an error, and the parameters of the step before. */
static void divergence(void) {
  eman_trainer *trainer = NULL;
  const char *const wild = "{\"epochs\": 1000, \"learning_rate\": 1000000}";
  require("trainer", eman_trainer_create(context, model, wild, &trainer) == EMAN_OK);
  add_meshes(trainer, context);
  const eman_status status = eman_trainer_run(trainer, NULL, NULL, NULL);
  require("divergence is an error", status == EMAN_E_DIVERGED);
  eman_model *trained = NULL;
  require("the model is there", eman_trainer_model(trainer, 0, &trained) == EMAN_OK);
  eman_model_free(trained);
  eman_trainer_free(trainer);
}

/* A limit that holds one mesh's geometry, not four: they are computed anew. */
static void memory_limit(void) {
  eman_context_options options;
  require("options", eman_context_options_init(&options, sizeof options) == EMAN_OK);
  int enough = 0, refusals = 0;
  for (options.memory_limit = 200000; options.memory_limit < 100000000 && !enough; options.memory_limit *= 1.2) {
    eman_context *small = NULL;
    eman_trainer *trainer = NULL;
    require("context", eman_context_create(&options, &small) == EMAN_OK);
    eman_status status = eman_trainer_create(small, model, training, &trainer);
    if (status == EMAN_OK) {
      add_meshes(trainer, context);
      status = eman_trainer_run(trainer, NULL, NULL, NULL);
      eman_trainer_free(trainer);
    }
    require("memory", status == EMAN_OK || status == EMAN_E_NOMEM);
    enough = status == EMAN_OK;
    refusals += !enough;
    eman_context_info info = {.struct_size = sizeof info};
    require("trim", eman_trim() == EMAN_OK);
    require("describe", eman_context_describe(small, &info) == EMAN_OK && info.memory_used == 0);
    eman_context_free(small);
  }
  require("a limit is too small, another is enough", enough && refusals > 0);
}

/* ------------------------------------------------------------------ threads */

static void *save_often(void *argument) {
  host *h = argument;
  for (int i = 0; i < 20; i++) require("save beside a run", eman_trainer_save(h->trainer, h->path) == EMAN_OK);
  return NULL;
}

static int32_t free_it(void *user, const eman_step_info *info) {
  (void)info;
  eman_trainer_free(user);
  return 0;
}

static int32_t never(void *user, double fraction) {
  (void)user;
  (void)fraction;
  return 1;
}

/* What a progress function may do: everything but a step. */
typedef struct watcher {
  eman_trainer *trainer;
  const char *path;
  int calls, free_at;
  double last;
} watcher;

static int32_t on_progress(void *user, double fraction) {
  watcher *w = user;
  require("progress does not fall", fraction >= w->last && fraction <= 1);
  w->last = fraction;
  if (++w->calls == w->free_at) {
    eman_trainer_free(w->trainer);
    return 0;
  }
  if (w->calls != 5) return 0;
  char state[4096];
  int64_t length = 0;
  eman_model *now = NULL;
  require("state in a step", eman_trainer_state(w->trainer, state, sizeof state, &length) == EMAN_OK);
  require("it is that before the step", strstr(state, "\"step\":0,") != NULL);
  require("save in a step", eman_trainer_save(w->trainer, w->path) == EMAN_OK);
  require("model in a step", eman_trainer_model(w->trainer, 0, &now) == EMAN_OK);
  eman_model_free(now);
  refused("run in a step", eman_trainer_run(w->trainer, NULL, NULL, NULL), EMAN_E_INVALID_ARGUMENT, "in progress");
  return 0;
}

static void calls_in_a_step(const char *path) {
  watcher w = {create(), path, 0, -1, 0}, last = {create(), path, 0, 8, 0};
  eman_control control;
  require("control", eman_control_init(&control, sizeof control) == EMAN_OK);
  control.progress = on_progress;
  control.user = &w;
  require("run", eman_trainer_run(w.trainer, &control, NULL, NULL) == EMAN_OK && w.calls > 5 && w.last == 1);
  eman_trainer_free(w.trainer);
  control.user = &last;
  eman_step_info info = {.struct_size = sizeof info};
  refused("freed in a step", eman_trainer_step(last.trainer, &control, &info), EMAN_E_INVALID_ARGUMENT, "freed");
}

static void threads_and_ends(const char *path) {
  eman_trainer *trainer = create();
  host h = {trainer, path, 0, -1, 0};
  pthread_t other;
  if (pthread_create(&other, NULL, save_often, &h) != 0) abort();
  require("run beside saves", eman_trainer_run(trainer, NULL, on_step, &h) == EMAN_OK);
  pthread_join(other, NULL);
  eman_trainer_free(trainer);

  trainer = create();
  refused("freed in the middle", eman_trainer_run(trainer, NULL, free_it, trainer), EMAN_E_INVALID_ARGUMENT, "freed");

  trainer = create();
  int32_t cancel = 1;
  eman_control control = {.struct_size = sizeof control, .cancel = &cancel};
  refused("cancelled", eman_trainer_run(trainer, &control, NULL, NULL), EMAN_E_CANCELLED, "");
  control.cancel = NULL;
  control.progress = never;
  refused("progress", eman_trainer_run(trainer, &control, NULL, NULL), EMAN_E_CANCELLED, "");
  refused("a step that is no function", eman_trainer_run(trainer, NULL, (eman_step_function)(uintptr_t)3, NULL),
          EMAN_E_INVALID_ARGUMENT, "step");
  eman_trainer_free(trainer);
}

int main(void) {
  char path[] = "/tmp/eman-trainers-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) abort();
  close(fd);
  for (int v = 0; v < VERTICES; v++) labels[v] = v % 11 == 0 ? -1 : v % CLASSES;
  require("context", eman_context_create(NULL, &context) == EMAN_OK);
  require("model", eman_model_create(context, "{\"classes\": 3, \"width\": 4, \"hidden\": 8}", 7, &model) == EMAN_OK);
  resumption(path);
  for (int v = 0; v < VERTICES; v++) labels[v] = v % CLASSES;
  bad_input(path);
  divergence();
  memory_limit();
  calls_in_a_step(path);
  threads_and_ends(path);
  unlink(path);
  eman_model_free(model);
  require("trim", eman_trim() == EMAN_OK);
  eman_context_info info = {.struct_size = sizeof info};
  require("describe", eman_context_describe(context, &info) == EMAN_OK);
  require("nothing is left", info.memory_used == 0);
  eman_context_free(context);
  printf("%d failures\n", failures);
  return failures > 0;
}
