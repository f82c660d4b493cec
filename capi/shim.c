/* The public functions of libeman. Each checks its pointers, guards against
 * fork, brings the floating-point environment into its default state, and
 * calls its Go counterpart, emango_..., which does the work. */
#include "shim.h"
#include "_cgo_export.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The layout of public structs is part of the binary interface. */
#define PIN_SIZE(type, size) _Static_assert(sizeof(type) == (size), "size of " #type)
#define PIN(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)
PIN_SIZE(eman_view, 48);
PIN(eman_view, rows, 8);
PIN(eman_view, columns, 16);
PIN(eman_view, row_stride, 24);
PIN(eman_view, column_stride, 32);
PIN(eman_view, dtype, 40);
PIN(eman_view, reserved, 44);
PIN_SIZE(eman_mutable_view, 48);
PIN(eman_mutable_view, rows, 8);
PIN(eman_mutable_view, columns, 16);
PIN(eman_mutable_view, row_stride, 24);
PIN(eman_mutable_view, column_stride, 32);
PIN(eman_mutable_view, dtype, 40);
PIN(eman_mutable_view, reserved, 44);
PIN_SIZE(eman_context_options, 40);
PIN(eman_context_options, threads, 4);
PIN(eman_context_options, memory_limit, 8);
PIN(eman_context_options, instruction_set, 16);
PIN(eman_context_options, reserved, 20);
PIN(eman_context_options, log, 24);
PIN(eman_context_options, log_user, 32);
PIN_SIZE(eman_context_info, 40);
PIN(eman_context_info, threads, 4);
PIN(eman_context_info, instruction_set, 8);
PIN(eman_context_info, memory_used, 16);
PIN(eman_context_info, memory_peak, 24);
PIN(eman_context_info, memory_limit, 32);
PIN_SIZE(eman_control, 32);
PIN(eman_control, reserved, 4);
PIN(eman_control, cancel, 8);
PIN(eman_control, progress, 16);
PIN(eman_control, user, 24);
PIN_SIZE(eman_mesh_options, 32);
PIN(eman_mesh_options, normals, 4);
PIN(eman_mesh_options, gauge, 8);
PIN(eman_mesh_options, degenerate, 12);
PIN(eman_mesh_options, seed, 16);
PIN(eman_mesh_options, frames, 24);
PIN_SIZE(eman_reltan_options, 24);
PIN(eman_reltan_options, space, 4);
PIN(eman_reltan_options, degree_power, 8);
PIN(eman_reltan_options, constant, 16);
PIN_SIZE(eman_report_summary, 104);
PIN(eman_report_summary, closed, 4);
PIN(eman_report_summary, manifold, 8);
PIN(eman_report_summary, oriented, 12);
PIN(eman_report_summary, vertex_count, 16);
PIN(eman_report_summary, min_degree, 56);
PIN(eman_report_summary, area, 72);
PIN(eman_report_summary, max_length, 96);

PIN_SIZE(eman_tensor, 32);
PIN(eman_tensor, data, 8);
PIN(eman_tensor, shape, 16);
PIN(eman_tensor, rank, 24);
PIN(eman_tensor, dtype, 28);
PIN_SIZE(eman_parameter_info, 176);
PIN(eman_parameter_info, shape, 8);
PIN(eman_parameter_info, size, 40);
PIN(eman_parameter_info, name, 48);
PIN_SIZE(eman_layer_info, 80);
PIN(eman_layer_info, channels, 4);
PIN(eman_layer_info, order, 8);
PIN(eman_layer_info, heads, 12);
PIN(eman_layer_info, name, 16);
PIN_SIZE(eman_work, 24);
PIN(eman_work, flops, 8);
PIN(eman_work, seconds, 16);
PIN_SIZE(eman_evaluation, 32);
PIN(eman_evaluation, labels, 8);
PIN(eman_evaluation, loss, 24);
PIN_SIZE(eman_step_info, 96);
PIN(eman_step_info, epoch, 4);
PIN(eman_step_info, step, 8);
PIN(eman_step_info, loss, 24);
PIN(eman_step_info, learning_rate, 48);
PIN(eman_step_info, epoch_ended, 56);
PIN(eman_step_info, epoch_loss, 64);
PIN(eman_step_info, validation_accuracy, 88);

/* ------------------------------------------------------------------ errors */

/* The text of each thread's last error lies in memory of its own, found by a
 * key. Thread-local storage would be allocated statically with the Go runtime's
 * and could make dlopen fail in a host that has little of it left. */
#if defined(_WIN32)
typedef DWORD thread_key;
static int create_key(thread_key *key) { return (*key = FlsAlloc(free)) != FLS_OUT_OF_INDEXES; }
static void *get_value(thread_key key) { return FlsGetValue(key); }
static int set_value(thread_key key, void *value) { return FlsSetValue(key, value); }
#else
typedef pthread_key_t thread_key;
static int create_key(thread_key *key) { return pthread_key_create(key, free) == 0; }
static void *get_value(thread_key key) { return pthread_getspecific(key); }
static int set_value(thread_key key, void *value) { return pthread_setspecific(key, value) == 0; }
#endif

static thread_key error_key;
static int error_key_exists;

__attribute__((constructor)) static void make_error_key(void) { error_key_exists = create_key(&error_key); }

static emango_error *find_error(void) { return error_key_exists ? get_value(error_key) : NULL; }

/* NULL when there is no memory for it. */
static emango_error *own_error(void) {
  emango_error *error = find_error();
  if (error != NULL || !error_key_exists) return error;
  error = calloc(1, sizeof *error);
  if (error != NULL && !set_value(error_key, error)) {
    free(error);
    return NULL;
  }
  return error;
}

static eman_status fail(emango_error *error, eman_status status, const char *text) {
  size_t length = strlen(text);
  if (error == NULL) return status;
  if (length >= sizeof error->text) length = sizeof error->text - 1;
  memcpy(error->text, text, length);
  error->text[length] = 0;
  return status;
}

const char *eman_last_error(void) {
  emango_error *error = find_error();
  return error != NULL ? error->text : "";
}

const char *eman_status_name(eman_status status) {
  switch (status) {
#define NAME(code) \
  case code: return #code
    NAME(EMAN_OK);
    NAME(EMAN_E_INVALID_ARGUMENT);
    NAME(EMAN_E_BUFFER_TOO_SMALL);
    NAME(EMAN_E_VERSION);
    NAME(EMAN_E_UNSUPPORTED);
    NAME(EMAN_E_INVALID_MESH);
    NAME(EMAN_E_INVALID_MODEL);
    NAME(EMAN_E_DIVERGED);
    NAME(EMAN_E_NOMEM);
    NAME(EMAN_E_IO);
    NAME(EMAN_E_CANCELLED);
    NAME(EMAN_E_FORKED);
    NAME(EMAN_E_INTERNAL);
#undef NAME
  }
  return "EMAN_E_UNKNOWN";
}

const char *eman_finding_name(eman_finding finding) {
  static const char *const names[EMAN_FINDING_COUNT] = {
      "isolated_vertices", "coincident_vertices", "zero_normal_vertices", "non_manifold_vertices",
      "boundary_edges",    "non_manifold_edges",  "inconsistent_edges",   "zero_length_edges",
      "dropped_faces",     "zero_area_faces",     "needle_faces",         "duplicate_faces",
  };
  return finding >= 0 && finding < EMAN_FINDING_COUNT ? names[finding] : "unknown";
}

int32_t eman_version(void) { return 10000 * EMAN_VERSION_MAJOR + 100 * EMAN_VERSION_MINOR + EMAN_VERSION_PATCH; }
const char *eman_version_string(void) { return EMAN_VERSION_STRING; }
int32_t eman_abi_version(void) { return EMAN_ABI_VERSION; }

/* ------------------------------------------------------------------ guards */

/* Go's threads do not exist in the child of a fork: a call would wait for ever. */
static volatile int forked;

#if defined(_WIN32)
/* There is no fork. A Go runtime cannot be unloaded: what the linker's nodelete
 * says elsewhere, the library says itself. */
__attribute__((constructor)) static void stay_loaded(void) {
  HMODULE self;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCWSTR)&forked, &self);
}
#else
static void note_fork(void) { forked = 1; }
__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(NULL, NULL, note_fork); }
#endif

/* The floating-point control register of the calling thread, flags included. */
#if defined(__x86_64__)
enum { DEFAULT_ENVIRONMENT = 0x1F80 };
static inline uint64_t get_environment(void) { return _mm_getcsr(); }
static inline void set_environment(uint64_t value) { _mm_setcsr((unsigned int)value); }
#elif defined(__aarch64__)
enum { DEFAULT_ENVIRONMENT = 0 };
static inline uint64_t get_environment(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
static inline void set_environment(uint64_t value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#else
#error "libeman is built for x86-64 and arm64"
#endif

/* Enters the default environment and returns what the thread had to remember
 * before: a callback of the host's may call the library again. */
static inline uint64_t enter(emango_error *error) {
  const uint64_t outer = error->host_environment;
  error->host_environment = get_environment();
  set_environment(DEFAULT_ENVIRONMENT);
  return outer;
}

static inline void leave(emango_error *error, uint64_t outer) {
  set_environment(error->host_environment);
  error->host_environment = outer;
}

/* No object lies in the first page; small numbers there are mistakes that the
 * Go runtime must not see as pointers. */
static int unusable(const volatile void *pointer) { return (uintptr_t)pointer < 4096; }

static eman_status refuse_pointer(emango_error *error, const volatile void *pointer, const char *name) {
  char text[128];
  const char *what = pointer == NULL ? " is NULL" : " is not a valid address";
  size_t length = strlen(name);
  if (length > 64) length = 64;
  memcpy(text, name, length);
  strcpy(text + length, what);
  return fail(error, EMAN_E_INVALID_ARGUMENT, text);
}

/* First statements of a public function. */
#define ENTER()                           \
  emango_error *error = own_error();      \
  if (error == NULL) return EMAN_E_NOMEM; \
  error->text[0] = 0;                     \
  if (forked) return fail(error, EMAN_E_FORKED, "the library cannot be used in a child of fork()")
#define NEED(pointer)                                                         \
  do {                                                                        \
    if (unusable(pointer)) return refuse_pointer(error, (pointer), #pointer); \
  } while (0)
#define NULLABLE(pointer)                                                                          \
  do {                                                                                             \
    if ((pointer) != NULL && unusable(pointer)) return refuse_pointer(error, (pointer), #pointer); \
  } while (0)
/* The call itself, as the last statement. */
#define CALL(call)                             \
  do {                                         \
    const uint64_t outer = enter(error);       \
    const eman_status status = (call);         \
    leave(error, outer);                       \
    if (status == EMAN_OK) error->text[0] = 0; \
    return status;                             \
  } while (0)
#define FREE(call, object)                                   \
  do {                                                       \
    emango_error *error = own_error();                       \
    if (forked || unusable(object) || error == NULL) return; \
    const uint64_t outer = enter(error);                     \
    call;                                                    \
    leave(error, outer);                                     \
    error->text[0] = 0;                                      \
  } while (0)

/* ------------------------------------------------------------------ services for the Go half */

/* Large arrays: zeroed, aligned to a cache line. calloc gives fresh pages
 * without touching them. The block's own address stands before the array. */
enum { ALIGNMENT = 64 };

void *emango_allocate(int64_t bytes) {
  if (bytes < 0 || (uint64_t)bytes > SIZE_MAX - ALIGNMENT - sizeof(void *)) return NULL;
  char *block = calloc(1, (size_t)bytes + ALIGNMENT + sizeof(void *));
  if (block == NULL) return NULL;
  uintptr_t array = ((uintptr_t)block + sizeof(void *) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  ((void **)array)[-1] = block;
  return (void *)array;
}

void emango_release(void *memory) {
  if (memory != NULL) free(((void **)memory)[-1]);
}

void emango_trim_heap(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

/* The host's functions run in the host's floating-point environment. */
int32_t emango_call_progress(uintptr_t progress, uintptr_t user, double fraction) {
  emango_error *error = find_error();
  set_environment(error->host_environment);
  const int32_t stop = ((eman_progress_function)progress)((void *)user, fraction);
  error->host_environment = get_environment();
  set_environment(DEFAULT_ENVIRONMENT);
  return stop;
}

int32_t emango_call_step(uintptr_t step, uintptr_t user, const eman_step_info *info) {
  emango_error *error = find_error();
  set_environment(error->host_environment);
  const int32_t stop = ((eman_step_function)step)((void *)user, info);
  error->host_environment = get_environment();
  set_environment(DEFAULT_ENVIRONMENT);
  return stop;
}

void emango_call_log(uintptr_t log, uintptr_t user, int32_t level, const char *message) {
  emango_error *error = find_error();
  set_environment(error->host_environment);
  ((eman_log_function)log)((void *)user, level, message);
  error->host_environment = get_environment();
  set_environment(DEFAULT_ENVIRONMENT);
}

/* ------------------------------------------------------------------ options */

#define DEFINE_INIT(function, type, name, ...)                                                        \
  eman_status function(type *name, uint32_t struct_size) {                                            \
    ENTER();                                                                                          \
    NEED(name);                                                                                       \
    static const type defaults = {__VA_ARGS__};                                                       \
    CALL(emango_init_struct(name, struct_size, (void *)&defaults, (uint32_t)sizeof defaults, error)); \
  }

DEFINE_INIT(eman_context_options_init, eman_context_options, options, 0)
DEFINE_INIT(eman_control_init, eman_control, control, 0)
DEFINE_INIT(eman_mesh_options_init, eman_mesh_options, options, 0)
DEFINE_INIT(eman_reltan_options_init, eman_reltan_options, options, .degree_power = 1.5, .constant = 1)

/* ------------------------------------------------------------------ library */

eman_status eman_build_info(char *text, int64_t capacity, int64_t *length) {
  ENTER();
  NEED(length);
  if (capacity != 0) NEED(text);
  CALL(emango_build_info(text, capacity, length, error));
}

eman_status eman_trim(void) {
  ENTER();
  CALL(emango_trim(error));
}

/* ------------------------------------------------------------------ context */

eman_status eman_context_create(const eman_context_options *options, eman_context **context) {
  ENTER();
  NULLABLE(options);
  NEED(context);
  CALL(emango_context_create((eman_context_options *)options, context, error));
}

void eman_context_free(eman_context *context) { FREE(emango_context_free(context), context); }

eman_status eman_context_describe(const eman_context *context, eman_context_info *info) {
  ENTER();
  NEED(context);
  NEED(info);
  CALL(emango_context_describe((eman_context *)context, info, error));
}

/* ------------------------------------------------------------------ mesh */

eman_status eman_mesh_create(eman_context *context, const eman_view *positions, const eman_view *faces,
                             const eman_mesh_options *options, const eman_control *control, eman_mesh **mesh) {
  ENTER();
  NEED(context);
  NEED(positions);
  NEED(faces);
  NULLABLE(options);
  NULLABLE(control);
  NEED(mesh);
  CALL(emango_mesh_create(context, (eman_view *)positions, (eman_view *)faces, (eman_mesh_options *)options,
                          (eman_control *)control, mesh, error));
}

void eman_mesh_free(eman_mesh *mesh) { FREE(emango_mesh_free(mesh), mesh); }

eman_status eman_mesh_update(eman_mesh *mesh, const eman_view *positions, const eman_view *frames,
                             const eman_control *control) {
  ENTER();
  NEED(mesh);
  NEED(positions);
  NULLABLE(frames);
  NULLABLE(control);
  CALL(emango_mesh_update(mesh, (eman_view *)positions, (eman_view *)frames, (eman_control *)control, error));
}

eman_status eman_mesh_counts(const eman_mesh *mesh, int64_t *vertices, int64_t *faces, int64_t *edges) {
  ENTER();
  NEED(mesh);
  NEED(vertices);
  NEED(faces);
  NEED(edges);
  CALL(emango_mesh_counts((eman_mesh *)mesh, vertices, faces, edges, error));
}

/* A function that writes one array of a mesh. */
#define DEFINE_MESH_OUTPUT(function, go_function, name)                        \
  eman_status function(const eman_mesh *mesh, const eman_mutable_view *name) { \
    ENTER();                                                                   \
    NEED(mesh);                                                                \
    NEED(name);                                                                \
    CALL(go_function((eman_mesh *)mesh, (eman_mutable_view *)name, error));    \
  }

DEFINE_MESH_OUTPUT(eman_mesh_positions, emango_mesh_positions, positions)
DEFINE_MESH_OUTPUT(eman_mesh_faces, emango_mesh_faces, faces)
DEFINE_MESH_OUTPUT(eman_mesh_vertex_normals, emango_mesh_vertex_normals, normals)
DEFINE_MESH_OUTPUT(eman_mesh_frames, emango_mesh_frames, frames)
DEFINE_MESH_OUTPUT(eman_mesh_reverse_edges, emango_mesh_reverse_edges, edges)
DEFINE_MESH_OUTPUT(eman_mesh_edge_angles, emango_mesh_edge_angles, angles)
DEFINE_MESH_OUTPUT(eman_mesh_transport_angles, emango_mesh_transport_angles, angles)
DEFINE_MESH_OUTPUT(eman_mesh_get_features, emango_mesh_get_features, features)

eman_status eman_mesh_neighbors(const eman_mesh *mesh, const eman_mutable_view *offsets,
                                const eman_mutable_view *indices) {
  ENTER();
  NEED(mesh);
  NEED(offsets);
  NEED(indices);
  CALL(emango_mesh_neighbors((eman_mesh *)mesh, (eman_mutable_view *)offsets, (eman_mutable_view *)indices, error));
}

eman_status eman_mesh_reltan(const eman_mesh *mesh, const double *powers, int32_t count,
                             const eman_reltan_options *options, const eman_control *control,
                             const eman_mutable_view *features) {
  ENTER();
  NEED(mesh);
  NEED(powers);
  NULLABLE(options);
  NULLABLE(control);
  NEED(features);
  CALL(emango_mesh_reltan((eman_mesh *)mesh, (double *)powers, count, (eman_reltan_options *)options,
                          (eman_control *)control, (eman_mutable_view *)features, error));
}

eman_status eman_mesh_components(const eman_mesh *mesh, const eman_mutable_view *labels, int64_t *count) {
  ENTER();
  NEED(mesh);
  NEED(labels);
  NEED(count);
  CALL(emango_mesh_components((eman_mesh *)mesh, (eman_mutable_view *)labels, count, error));
}

/* ------------------------------------------------------------------ mesh doctor */

eman_status eman_mesh_examine(const eman_mesh *mesh, const eman_control *control, eman_report **report) {
  ENTER();
  NEED(mesh);
  NULLABLE(control);
  NEED(report);
  CALL(emango_mesh_examine((eman_mesh *)mesh, (eman_control *)control, report, error));
}

void eman_report_free(eman_report *report) { FREE(emango_report_free(report), report); }

eman_status eman_report_summarize(const eman_report *report, eman_report_summary *summary) {
  ENTER();
  NEED(report);
  NEED(summary);
  CALL(emango_report_summarize((eman_report *)report, summary, error));
}

eman_status eman_report_count(const eman_report *report, eman_finding finding, int64_t *count, int32_t *width) {
  ENTER();
  NEED(report);
  NEED(count);
  NEED(width);
  CALL(emango_report_count((eman_report *)report, finding, count, width, error));
}

eman_status eman_report_indices(const eman_report *report, eman_finding finding, const eman_mutable_view *indices) {
  ENTER();
  NEED(report);
  NEED(indices);
  CALL(emango_report_indices((eman_report *)report, finding, (eman_mutable_view *)indices, error));
}

/* ------------------------------------------------------------------ transformations */

eman_status eman_mesh_change_gauge(const eman_mesh *mesh, const eman_view *angles, const eman_control *control,
                                   eman_mesh **changed) {
  ENTER();
  NEED(mesh);
  NEED(angles);
  NULLABLE(control);
  NEED(changed);
  CALL(emango_mesh_change_gauge((eman_mesh *)mesh, (eman_view *)angles, (eman_control *)control, changed, error));
}

eman_status eman_mesh_transform(const eman_mesh *mesh, const double *rotation, const double *translation, double scale,
                                const eman_control *control, eman_mesh **moved) {
  ENTER();
  NEED(mesh);
  NEED(rotation);
  NEED(translation);
  NULLABLE(control);
  NEED(moved);
  CALL(emango_mesh_transform((eman_mesh *)mesh, (double *)rotation, (double *)translation, scale,
                             (eman_control *)control, moved, error));
}

eman_status eman_mesh_permute(const eman_mesh *mesh, const eman_view *vertex_order, const eman_view *face_order,
                              const eman_view *corner_shift, const eman_control *control, eman_mesh **permuted) {
  ENTER();
  NEED(mesh);
  NEED(vertex_order);
  NULLABLE(face_order);
  NULLABLE(corner_shift);
  NULLABLE(control);
  NEED(permuted);
  CALL(emango_mesh_permute((eman_mesh *)mesh, (eman_view *)vertex_order, (eman_view *)face_order,
                           (eman_view *)corner_shift, (eman_control *)control, permuted, error));
}

eman_status eman_random_angles(uint64_t seed, const eman_mutable_view *angles) {
  ENTER();
  NEED(angles);
  CALL(emango_random_angles(seed, (eman_mutable_view *)angles, error));
}

eman_status eman_random_rotation(uint64_t seed, double *rotation) {
  ENTER();
  NEED(rotation);
  CALL(emango_random_rotation(seed, rotation, error));
}

eman_status eman_random_permutation(uint64_t seed, const eman_mutable_view *order) {
  ENTER();
  NEED(order);
  CALL(emango_random_permutation(seed, (eman_mutable_view *)order, error));
}

/* ------------------------------------------------------------------ models */

eman_status eman_model_create(eman_context *context, const char *description, uint64_t seed, eman_model **model) {
  ENTER();
  NEED(context);
  NEED(description);
  NEED(model);
  CALL(emango_model_create(context, (char *)description, seed, model, error));
}

eman_status eman_model_load(eman_context *context, const char *path, eman_model **model) {
  ENTER();
  NEED(context);
  NEED(path);
  NEED(model);
  CALL(emango_model_load(context, (char *)path, model, error));
}

eman_status eman_model_load_memory(eman_context *context, const void *data, int64_t size, eman_model **model) {
  ENTER();
  NEED(context);
  NEED(data);
  NEED(model);
  CALL(emango_model_load_memory(context, (void *)data, size, model, error));
}

eman_status eman_model_from_authors(eman_context *context, const char *config, const eman_tensor *tensors,
                                    int32_t count, eman_model **model) {
  ENTER();
  NEED(context);
  NEED(config);
  NEED(tensors);
  NEED(model);
  CALL(emango_model_from_authors(context, (char *)config, (eman_tensor *)tensors, count, model, error));
}

void eman_model_free(eman_model *model) { FREE(emango_model_free(model), model); }

eman_status eman_model_save(const eman_model *model, const char *path) {
  ENTER();
  NEED(model);
  NEED(path);
  CALL(emango_model_save((eman_model *)model, (char *)path, error));
}

eman_status eman_model_save_memory(const eman_model *model, void *data, int64_t capacity, int64_t *size) {
  ENTER();
  NEED(model);
  if (capacity != 0) NEED(data);
  NEED(size);
  CALL(emango_model_save_memory((eman_model *)model, data, capacity, size, error));
}

eman_status eman_model_spec(const eman_model *model, char *text, int64_t capacity, int64_t *length) {
  ENTER();
  NEED(model);
  if (capacity != 0) NEED(text);
  NEED(length);
  CALL(emango_model_spec((eman_model *)model, text, capacity, length, error));
}

eman_status eman_model_parameter_count(const eman_model *model, int32_t *count) {
  ENTER();
  NEED(model);
  NEED(count);
  CALL(emango_model_parameter_count((eman_model *)model, count, error));
}

eman_status eman_model_describe_parameter(const eman_model *model, int32_t index, eman_parameter_info *info) {
  ENTER();
  NEED(model);
  NEED(info);
  CALL(emango_model_describe_parameter((eman_model *)model, index, info, error));
}

eman_status eman_model_get_parameter(const eman_model *model, int32_t index, const eman_mutable_view *values) {
  ENTER();
  NEED(model);
  NEED(values);
  CALL(emango_model_get_parameter((eman_model *)model, index, (eman_mutable_view *)values, error));
}

eman_status eman_model_set_parameters(eman_model *model, const eman_tensor *tensors, int32_t count) {
  ENTER();
  NEED(model);
  NEED(tensors);
  CALL(emango_model_set_parameters(model, (eman_tensor *)tensors, count, error));
}

eman_status eman_model_layer_count(const eman_model *model, int32_t *count) {
  ENTER();
  NEED(model);
  NEED(count);
  CALL(emango_model_layer_count((eman_model *)model, count, error));
}

eman_status eman_model_describe_layer(const eman_model *model, int32_t layer, eman_layer_info *info) {
  ENTER();
  NEED(model);
  NEED(info);
  CALL(emango_model_describe_layer((eman_model *)model, layer, info, error));
}

eman_status eman_model_estimate(const eman_model *model, int64_t vertices, int64_t edges, int64_t *bytes) {
  ENTER();
  NEED(model);
  NEED(bytes);
  CALL(emango_model_estimate((eman_model *)model, vertices, edges, bytes, error));
}

eman_status eman_model_estimate_work(const eman_model *model, int64_t vertices, int64_t edges, eman_work *work) {
  ENTER();
  NEED(model);
  NEED(work);
  CALL(emango_model_estimate_work((eman_model *)model, vertices, edges, work, error));
}

eman_status eman_model_predict(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                               const eman_mutable_view *labels) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(labels);
  CALL(emango_model_predict((eman_model *)model, (eman_mesh *)mesh, (eman_control *)control,
                            (eman_mutable_view *)labels, error));
}

eman_status eman_model_top(const eman_model *model, const eman_mesh *mesh, int32_t k, const eman_control *control,
                           const eman_mutable_view *labels, const eman_mutable_view *probabilities) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(labels);
  NEED(probabilities);
  CALL(emango_model_top((eman_model *)model, (eman_mesh *)mesh, k, (eman_control *)control, (eman_mutable_view *)labels,
                        (eman_mutable_view *)probabilities, error));
}

eman_status eman_model_logits(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                              const eman_mutable_view *logits) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(logits);
  CALL(emango_model_logits((eman_model *)model, (eman_mesh *)mesh, (eman_control *)control, (eman_mutable_view *)logits,
                           error));
}

eman_status eman_model_attention(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                 const eman_control *control, const eman_mutable_view *attention) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(attention);
  CALL(emango_model_attention((eman_model *)model, (eman_mesh *)mesh, layer, (eman_control *)control,
                              (eman_mutable_view *)attention, error));
}

eman_status eman_model_features(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                const eman_control *control, const eman_mutable_view *features) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(features);
  CALL(emango_model_features((eman_model *)model, (eman_mesh *)mesh, layer, (eman_control *)control,
                             (eman_mutable_view *)features, error));
}

eman_status eman_model_layer_size(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                  const eman_control *control, int64_t *rows, int64_t *edges) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(rows);
  NEED(edges);
  CALL(emango_model_layer_size((eman_model *)model, (eman_mesh *)mesh, layer, (eman_control *)control, rows, edges,
                               error));
}

eman_status eman_model_layer_neighbors(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                       const eman_control *control, const eman_mutable_view *offsets,
                                       const eman_mutable_view *indices) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(offsets);
  NEED(indices);
  CALL(emango_model_layer_neighbors((eman_model *)model, (eman_mesh *)mesh, layer, (eman_control *)control,
                                    (eman_mutable_view *)offsets, (eman_mutable_view *)indices, error));
}

eman_status eman_model_samples(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                               const eman_mutable_view *positions, const eman_mutable_view *normals) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NULLABLE(control);
  NEED(positions);
  NEED(normals);
  CALL(emango_model_samples((eman_model *)model, (eman_mesh *)mesh, (eman_control *)control,
                            (eman_mutable_view *)positions, (eman_mutable_view *)normals, error));
}

eman_status eman_model_evaluate(const eman_model *model, const eman_mesh *mesh, const eman_view *labels,
                                const eman_control *control, eman_evaluation *result,
                                const eman_mutable_view *confusion) {
  ENTER();
  NEED(model);
  NEED(mesh);
  NEED(labels);
  NULLABLE(control);
  NEED(result);
  NULLABLE(confusion);
  CALL(emango_model_evaluate((eman_model *)model, (eman_mesh *)mesh, (eman_view *)labels, (eman_control *)control,
                             result, (eman_mutable_view *)confusion, error));
}

/* ------------------------------------------------------------------ training */

eman_status eman_trainer_create(eman_context *context, const eman_model *model, const char *description,
                                eman_trainer **trainer) {
  ENTER();
  NEED(context);
  NEED(model);
  NEED(description);
  NEED(trainer);
  CALL(emango_trainer_create(context, (eman_model *)model, (char *)description, trainer, error));
}

eman_status eman_trainer_load(eman_context *context, const char *path, eman_trainer **trainer) {
  ENTER();
  NEED(context);
  NEED(path);
  NEED(trainer);
  CALL(emango_trainer_load(context, (char *)path, trainer, error));
}

void eman_trainer_free(eman_trainer *trainer) { FREE(emango_trainer_free(trainer, error), trainer); }

eman_status eman_trainer_add_mesh(eman_trainer *trainer, const eman_mesh *mesh, const eman_view *labels,
                                  const char *name, int32_t validation) {
  ENTER();
  NEED(trainer);
  NEED(mesh);
  NEED(labels);
  NULLABLE(name);
  CALL(emango_trainer_add_mesh(trainer, (eman_mesh *)mesh, (eman_view *)labels, (char *)name, validation, error));
}

eman_status eman_trainer_run(eman_trainer *trainer, const eman_control *control, eman_step_function step, void *user) {
  ENTER();
  NEED(trainer);
  NULLABLE(control);
  CALL(emango_trainer_run(trainer, (eman_control *)control, (uintptr_t)step, (uintptr_t)user, error));
}

eman_status eman_trainer_step(eman_trainer *trainer, const eman_control *control, eman_step_info *info) {
  ENTER();
  NEED(trainer);
  NULLABLE(control);
  NEED(info);
  CALL(emango_trainer_step(trainer, (eman_control *)control, info, error));
}

eman_status eman_trainer_estimate(const eman_trainer *trainer, int64_t vertices, int64_t edges, int64_t *bytes) {
  ENTER();
  NEED(trainer);
  NEED(bytes);
  CALL(emango_trainer_estimate((eman_trainer *)trainer, vertices, edges, bytes, error));
}

eman_status eman_trainer_estimate_work(const eman_trainer *trainer, int64_t vertices, int64_t edges, eman_work *work) {
  ENTER();
  NEED(trainer);
  NEED(work);
  CALL(emango_trainer_estimate_work((eman_trainer *)trainer, vertices, edges, work, error));
}

eman_status eman_trainer_state(eman_trainer *trainer, char *text, int64_t capacity, int64_t *length) {
  ENTER();
  NEED(trainer);
  if (capacity != 0) NEED(text);
  NEED(length);
  CALL(emango_trainer_state(trainer, text, capacity, length, error));
}

eman_status eman_trainer_model(eman_trainer *trainer, int32_t best, eman_model **model) {
  ENTER();
  NEED(trainer);
  NEED(model);
  CALL(emango_trainer_model(trainer, best, model, error));
}

eman_status eman_trainer_save(eman_trainer *trainer, const char *path) {
  ENTER();
  NEED(trainer);
  NEED(path);
  CALL(emango_trainer_save(trainer, (char *)path, error));
}
