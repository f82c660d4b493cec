/* Every array, text and struct that a function reads, at the very end of
 * accessible memory and at its very beginning: nothing beyond it is read. A
 * read beyond would be a fault, which the library reports as a status. */
#define _GNU_SOURCE
#include <eman.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures, fence_behind, lent_count;

static void require(const char *what, int condition) {
  if (condition) return;
  printf("%s, fence %s: \"%s\"\n", what, fence_behind ? "behind" : "in front", eman_last_error());
  failures++;
}

#define OK(call) require(#call, (call) == EMAN_OK)

/* A copy with a fence. */
static void *lend(const void *bytes, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
  char *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  char *copy = fence_behind ? memory + whole - size : memory + page;
  memcpy(copy, bytes, size);
  if (mprotect(fence_behind ? memory + whole : memory, page, PROT_NONE) != 0) abort();
  if (mprotect(fence_behind ? memory : memory + page, whole, PROT_READ) != 0) abort();
  lent_count++;
  return copy;
}

static const char *text(const char *content) { return lend(content, strlen(content) + 1); }

static const eman_view *view(const void *data, int64_t rows, int64_t columns, eman_dtype type) {
  const int64_t size = type == EMAN_FLOAT64 || type == EMAN_INT64 ? 8 : 4;
  const eman_view v = {lend(data, (size_t)(rows * columns * size)), rows, columns, 0, 0, type, 0};
  return lend(&v, sizeof v);
}

static const double tetrahedron[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
static const float narrow[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
static const int32_t faces[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
static const int64_t wide_faces[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
static const double axes[36] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1,
                                1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1};
static const int32_t numbers[4] = {1, 2, 0, 3};
static const int32_t labels[4] = {0, 1, -1, 2};
static const double powers[3] = {0.5, 0.7, 2}, rotation[9] = {0, 1, 0, -1, 0, 0, 0, 0, 1};

static void meshes(eman_context *context) {
  eman_mesh *mesh, *changed, *custom;
  eman_mesh_options options;
  eman_reltan_options reltan;
  eman_control control;
  const int32_t cancel = 0;
  double result[24];
  const eman_mutable_view out = {result, 4, 6, 0, 0, EMAN_FLOAT64, 0};
  OK(eman_control_init(&control, sizeof control));
  control.cancel = lend(&cancel, sizeof cancel);
  const eman_control *watched = lend(&control, sizeof control);
  OK(eman_mesh_create(context, view(narrow, 4, 3, EMAN_FLOAT32), view(wide_faces, 4, 3, EMAN_INT64), NULL, watched,
                      &mesh));
  OK(eman_mesh_update(mesh, view(tetrahedron, 4, 3, EMAN_FLOAT64), NULL, watched));
  OK(eman_reltan_options_init(&reltan, sizeof reltan));
  OK(eman_mesh_reltan(mesh, lend(powers, sizeof powers), 3, lend(&reltan, sizeof reltan), watched,
                      lend(&out, sizeof out)));
  OK(eman_mesh_change_gauge(mesh, view(tetrahedron, 4, 1, EMAN_FLOAT64), watched, &changed));
  eman_mesh_free(changed);
  OK(eman_mesh_transform(mesh, lend(rotation, sizeof rotation), lend(powers, sizeof powers), 2, watched, &changed));
  eman_mesh_free(changed);
  const eman_view *order = view(numbers, 4, 1, EMAN_INT32), *shift = view(faces, 4, 1, EMAN_UINT32);
  OK(eman_mesh_permute(mesh, order, order, shift, watched, &changed));
  eman_mesh_free(changed);
  OK(eman_mesh_options_init(&options, sizeof options));
  options.gauge = EMAN_GAUGE_CUSTOM;
  options.frames = view(axes, 4, 9, EMAN_FLOAT64);
  OK(eman_mesh_create(context, view(tetrahedron, 4, 3, EMAN_FLOAT64), view(faces, 4, 3, EMAN_INT32),
                      lend(&options, sizeof options), NULL, &custom));
  OK(eman_mesh_update(custom, view(narrow, 4, 3, EMAN_FLOAT32), view(axes, 4, 9, EMAN_FLOAT64), NULL));
  eman_mesh_free(custom);
  eman_mesh_free(mesh);
}

/* All tensors of a model, each with its own fences. */
static const eman_tensor *tensors(const eman_model *model, int32_t *count) {
  static eman_tensor list[256];
  OK(eman_model_parameter_count(model, count));
  for (int i = 0; i < *count; i++) {
    eman_parameter_info info = {.struct_size = sizeof info};
    OK(eman_model_describe_parameter(model, i, &info));
    const eman_dtype type = i % 2 == 0 ? EMAN_FLOAT32 : EMAN_FLOAT64;
    const size_t bytes = (size_t)info.size * (type == EMAN_FLOAT32 ? 4 : 8);
    void *values = malloc(bytes);
    const eman_mutable_view out = {values, info.size, 1, 0, 0, type, 0};
    OK(eman_model_get_parameter(model, i, &out));
    const eman_tensor t = {text(info.name), lend(values, bytes), lend(info.shape, (size_t)info.rank * 8), info.rank,
                           type};
    free(values);
    list[i] = t;
  }
  return lend(list, (size_t)*count * sizeof *list);
}

static void models(eman_context *context) {
  static const char network[] = "{\"classes\": 3, \"width\": 4, \"blocks\": 1, \"hidden\": 4}";
  eman_mesh *mesh;
  eman_model *model, *same;
  eman_trainer *trainer;
  OK(eman_mesh_create(context, view(tetrahedron, 4, 3, EMAN_FLOAT64), view(faces, 4, 3, EMAN_INT32), NULL, NULL,
                      &mesh));
  OK(eman_model_create(context, text(network), 1, &model));
  int32_t count;
  const eman_tensor *list = tensors(model, &count);
  OK(eman_model_set_parameters(model, list, count));
  require("other tensors than the authors'", eman_model_from_authors(context, text("{\"model\": \"RelTanEMAN\"}"), list,
                                                                     count, &same) == EMAN_E_INVALID_MODEL);
  int64_t size;
  require("no room", eman_model_save_memory(model, NULL, 0, &size) == EMAN_E_BUFFER_TOO_SMALL);
  void *content = malloc((size_t)size);
  OK(eman_model_save_memory(model, content, size, &size));
  OK(eman_model_load_memory(context, lend(content, (size_t)size), size, &same));
  /* A file that ends anywhere is read no further than that. */
  for (int64_t cut = 0; cut < size; cut += 1 + cut / 4) {
    eman_model *half;
    require("half a file",
            eman_model_load_memory(context, lend(content, (size_t)cut), cut, &half) == EMAN_E_INVALID_MODEL);
  }
  free(content);
  eman_evaluation result = {.struct_size = sizeof result};
  OK(eman_model_evaluate(same, mesh, view(labels, 4, 1, EMAN_INT32), NULL, &result, NULL));
  OK(eman_trainer_create(context, model, text("{\"epochs\": 2}"), &trainer));
  OK(eman_trainer_add_mesh(trainer, mesh, view(labels, 4, 1, EMAN_INT32), text("tetrahedron"), 0));
  OK(eman_trainer_run(trainer, NULL, NULL, NULL));
  require("no such file", eman_model_load(context, text("/nowhere"), &same) == EMAN_E_IO &&
                              eman_model_save(model, text("/nowhere/at/all")) == EMAN_E_IO);
  require("no such file", eman_trainer_save(trainer, text("/nowhere/at/all")) == EMAN_E_IO);
  eman_trainer_free(trainer);
  require("no such file", eman_trainer_load(context, text("/nowhere"), &trainer) == EMAN_E_IO);
  eman_model_free(same);
  eman_model_free(model);
  eman_mesh_free(mesh);
}

int main(void) {
  for (fence_behind = 0; fence_behind < 2; fence_behind++) {
    eman_context_options options;
    eman_context *context;
    OK(eman_context_options_init(&options, sizeof options));
    OK(eman_context_create(lend(&options, sizeof options), &context));
    meshes(context);
    models(context);
    eman_context_free(context);
  }
  printf("%d arrays, %d failures\n", lent_count, failures);
  return failures > 0;
}
