/* Input that a hostile or careless host hands over. Each check prints a line
 * when it fails; the exit status is the number of failures. */
#define _GNU_SOURCE
#include <eman.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures;
static eman_context *context;

/* The call fails with the status, and the message names the culprit. */
static void refused(const char *what, eman_status status, eman_status want, const char *culprit) {
  if (status == want && strstr(eman_last_error(), culprit) != NULL) return;
  printf("%s: %s, \"%s\"; expected %s naming %s\n", what, eman_status_name(status), eman_last_error(),
         eman_status_name(want), culprit);
  failures++;
}

static void require(const char *what, int condition) {
  if (condition) return;
  printf("%s (last error: \"%s\")\n", what, eman_last_error());
  failures++;
}

static eman_view view_of(const void *data, int64_t rows, int64_t columns, eman_dtype dtype) {
  eman_view v = {data, rows, columns, 0, 0, dtype, 0};
  return v;
}

static eman_mutable_view output(void *data, int64_t rows, int64_t columns, eman_dtype dtype) {
  eman_mutable_view v = {data, rows, columns, 0, 0, dtype, 0};
  return v;
}

static const double tetrahedron[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
static const int32_t faces[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
static const double power = 0.7;

static eman_status create(const eman_view *positions, const eman_view *triangles, eman_mesh **mesh) {
  return eman_mesh_create(context, positions, triangles, NULL, NULL, mesh);
}

static eman_mesh *good_mesh(void) {
  eman_mesh *mesh = NULL;
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64), f = view_of(faces, 4, 3, EMAN_INT32);
  require("a tetrahedron is accepted", create(&p, &f, &mesh) == EMAN_OK);
  return mesh;
}

/* A page of memory whose end, or start, no access may pass. */
static char *fenced(int fence_behind) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  if (fence_behind) {
    mprotect(memory + page, page, PROT_NONE);
    return memory + page; /* the first byte that faults */
  }
  mprotect(memory, page, PROT_NONE);
  return memory + page; /* the first byte that does not */
}

static void bad_indices(void) {
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64);
  eman_mesh *mesh = (eman_mesh *)1;
  const int64_t wide[][3] = {
      {0, 1, -1},        {0, 1, 4}, {0, 1, INT64_C(1) << 31}, {0, 1, INT64_C(1) << 32}, {0, 1, INT64_MAX},
      {0, 1, INT64_MIN}, {0, 1, 1}};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    const eman_view f = view_of(wide[i], 1, 3, EMAN_INT64);
    refused("bad int64 index", create(&p, &f, &mesh), EMAN_E_INVALID_MESH, "face 0");
  }
  const int32_t narrow[] = {0, 1, 2, 3, -1, 0};
  eman_view f = view_of(narrow, 2, 3, EMAN_INT32);
  refused("negative int32 index", create(&p, &f, &mesh), EMAN_E_INVALID_MESH, "face 1: vertex index -1");
  f.dtype = EMAN_UINT32;
  refused("uint32 index", create(&p, &f, &mesh), EMAN_E_INVALID_MESH, "face 1: vertex index 4294967295");
  require("a refused mesh writes no handle", mesh == (eman_mesh *)1);
}

static void bad_coordinates(void) {
  const eman_view f = view_of(faces, 4, 3, EMAN_INT32);
  const double awkward[] = {NAN, INFINITY, -INFINITY, 1e301};
  for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++) {
    double wide[12];
    float narrow[12];
    for (int k = 0; k < 12; k++) narrow[k] = (float)(wide[k] = tetrahedron[k]);
    wide[7] = awkward[i];
    narrow[7] = (float)awkward[i];
    eman_mesh *mesh = NULL;
    eman_view p = view_of(wide, 4, 3, EMAN_FLOAT64);
    refused("bad float64 coordinate", create(&p, &f, &mesh), EMAN_E_INVALID_MESH, "vertex 2: coordinate y");
    p = view_of(narrow, 4, 3, EMAN_FLOAT32);
    refused("bad float32 coordinate", create(&p, &f, &mesh), EMAN_E_INVALID_MESH, "vertex 2: coordinate y");
  }
}

static void bad_views(void) {
  const eman_view good_p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64), good_f = view_of(faces, 4, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  eman_view v;
#define WITH(base, change) (v = (base), v.change, &v)
  const eman_status bad = EMAN_E_INVALID_ARGUMENT;
  refused("NULL data", create(WITH(good_p, data = NULL), &good_f, &mesh), bad, "positions.data");
  refused("small address", create(WITH(good_p, data = (void *)100), &good_f, &mesh), bad, "positions.data");
  refused("negative rows", create(WITH(good_p, rows = -1), &good_f, &mesh), bad, "positions.rows");
  refused("negative columns", create(&good_p, WITH(good_f, columns = -3), &mesh), bad, "faces.columns");
  refused("two columns", create(WITH(good_p, columns = 2), &good_f, &mesh), bad, "positions has 2 columns");
  refused("no dtype", create(WITH(good_p, dtype = 0), &good_f, &mesh), bad, "positions.dtype");
  refused("unknown dtype", create(WITH(good_p, dtype = 99), &good_f, &mesh), bad, "positions.dtype");
  refused("integer positions", create(WITH(good_p, dtype = EMAN_INT32), &good_f, &mesh), bad, "positions.dtype");
  refused("real faces", create(&good_p, WITH(good_f, dtype = EMAN_FLOAT32), &mesh), bad, "faces.dtype");
  refused("reserved field", create(WITH(good_p, reserved = 1), &good_f, &mesh), bad, "positions.reserved");
  refused("huge row stride", create(WITH(good_p, row_stride = INT64_MAX), &good_f, &mesh), bad, "positions");
  refused("huge negative stride", create(WITH(good_p, row_stride = INT64_MIN), &good_f, &mesh), bad, "positions");
  refused("huge column stride", create(WITH(good_p, column_stride = INT64_MAX), &good_f, &mesh), bad, "positions");
  refused("span below zero", create(WITH(good_p, row_stride = -(INT64_C(1) << 60)), &good_f, &mesh), bad, "positions");
  refused("rows beyond memory", create(WITH(good_p, rows = INT64_MAX), &good_f, &mesh), bad, "positions");
  refused("too many rows", create(WITH(good_p, rows = INT64_C(1) << 31), &good_f, &mesh), EMAN_E_UNSUPPORTED,
          "vertices");
  refused("too many faces", create(&good_p, WITH(good_f, rows = INT64_C(1) << 30), &mesh), EMAN_E_UNSUPPORTED, "faces");
  refused("unmapped data", create(WITH(good_p, data = fenced(1)), &good_f, &mesh), bad, "given by the caller");
#undef WITH
  require("no mesh was made", mesh == NULL);
}

static void bad_outputs(void) {
  eman_mesh *mesh = good_mesh();
  double buffer[64];
  for (int i = 0; i < 64; i++) buffer[i] = -7;
  eman_mutable_view out = output(buffer, 3, 2, EMAN_FLOAT64);
  refused("one row too few", eman_mesh_reltan(mesh, &power, 1, NULL, NULL, &out), EMAN_E_BUFFER_TOO_SMALL,
          "4 are needed");
  out = output(buffer, 4, 3, EMAN_FLOAT64);
  refused("wrong columns", eman_mesh_reltan(mesh, &power, 1, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT, "features");
  out = output(buffer, 4, 2, EMAN_INT32);
  refused("integer features", eman_mesh_reltan(mesh, &power, 1, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT,
          "features.dtype");
  out = output(NULL, 4, 2, EMAN_FLOAT64);
  refused("NULL features", eman_mesh_reltan(mesh, &power, 1, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT,
          "features.data");
  out = output(buffer, 4, 2, EMAN_FLOAT64);
  refused("no powers", eman_mesh_reltan(mesh, &power, 0, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT, "count");
  refused("INT32_MAX powers", eman_mesh_reltan(mesh, &power, INT32_MAX, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT,
          "count");
  const double nan_power = NAN;
  refused("NaN power", eman_mesh_reltan(mesh, &nan_power, 1, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT, "power 0");
  int32_t offsets[5], indices[11];
  memset(indices, 77, sizeof indices);
  eman_mutable_view o = output(offsets, 5, 1, EMAN_INT32), i = output(indices, 11, 1, EMAN_INT32);
  memset(offsets, 77, sizeof offsets);
  refused("one index too few", eman_mesh_neighbors(mesh, &o, &i), EMAN_E_BUFFER_TOO_SMALL, "12 are needed");
  require("a refused call leaves its other output alone", offsets[0] == 0x4d4d4d4d);
  for (int k = 0; k < 64; k++) require("a refused call writes nothing", buffer[k] == -7);
  eman_mesh_free(mesh);
}

/* Arrays at the very edge of accessible memory, with strides. */
static void fences(void) {
  for (int stride = 3; stride <= 5; stride++) {
    char *end = fenced(1);
    double *p = (double *)(end - (3 * (size_t)stride + 3) * sizeof(double));
    for (int i = 0; i < 12; i++) p[i / 3 * stride + i % 3] = tetrahedron[i];
    eman_view positions = view_of(p, 4, 3, EMAN_FLOAT64), triangles = view_of(faces, 4, 3, EMAN_INT32);
    positions.row_stride = stride * (int64_t)sizeof(double);
    eman_mesh *mesh = NULL;
    require("positions in front of a fence", create(&positions, &triangles, &mesh) == EMAN_OK);

    /* rows backwards: the first row is the last in memory */
    char *start = fenced(0);
    double *q = (double *)start;
    for (int i = 0; i < 12; i++) q[(3 - i / 3) * stride + i % 3] = tetrahedron[i];
    positions.data = q + 3 * stride;
    positions.row_stride = -positions.row_stride;
    require("positions backwards behind a fence", eman_mesh_update(mesh, &positions, NULL, NULL) == EMAN_OK);

    float *out = (float *)(fenced(1) - 8 * sizeof(float));
    eman_mutable_view features = output(out, 4, 2, EMAN_FLOAT32);
    require("features in front of a fence", eman_mesh_reltan(mesh, &power, 1, NULL, NULL, &features) == EMAN_OK);
    double reference[8];
    eman_mutable_view plain = output(reference, 4, 2, EMAN_FLOAT64);
    eman_mesh *same = good_mesh();
    require("features", eman_mesh_reltan(same, &power, 1, NULL, NULL, &plain) == EMAN_OK);
    for (int i = 0; i < 8; i++) require("strides change nothing", out[i] == (float)reference[i]);

    /* column-major, and misaligned by one byte */
    char odd[8 * sizeof(double) + 1];
    eman_mutable_view columns = {odd + 1, 4, 2, 8, 32, EMAN_FLOAT64, 0};
    require("misaligned columns", eman_mesh_reltan(same, &power, 1, NULL, NULL, &columns) == EMAN_OK);
    for (int i = 0; i < 8; i++) {
      double x;
      memcpy(&x, odd + 1 + i / 2 * 8 + i % 2 * 32, sizeof x);
      require("columns hold the same", x == reference[i]);
    }
    eman_mesh_free(same);
    eman_mesh_free(mesh);
  }
}

static void bad_options(void) {
  eman_context *c = NULL;
  eman_context_options o;
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.threads = -1;
  refused("threads", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.threads");
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.memory_limit = -1;
  refused("limit", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.memory_limit");
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.instruction_set = 77;
  refused("instruction set", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.instruction_set");
  o.instruction_set = 0;
  o.struct_size = 28; /* half a pointer */
  refused("struct_size", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.struct_size");
  o.struct_size = 0;
  refused("struct_size", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.struct_size");

  /* A program of a later version: zeros beyond are fine, set fields are not. */
  struct {
    eman_context_options known;
    int64_t later[2];
  } grown;
  memset(&grown, 0, sizeof grown);
  require("init of a longer struct", eman_context_options_init(&grown.known, sizeof grown) == EMAN_OK);
  require("a longer struct", eman_context_create(&grown.known, &c) == EMAN_OK);
  eman_context_free(c);
  grown.later[1] = 5;
  refused("an unknown field", eman_context_create(&grown.known, &c), EMAN_E_VERSION, "options");
  /* A program of an earlier version, that knew two fields. */
  o.struct_size = 8;
  o.threads = 1;
  o.instruction_set = 99; /* beyond what it knew */
  require("a shorter struct", eman_context_create(&o, &c) == EMAN_OK);
  eman_context_free(c);
}

/* Where a result cannot be stored nothing is kept. */
static void unwritable_outputs(void) {
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64), f = view_of(faces, 4, 3, EMAN_INT32);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *read_only = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  eman_mesh *mesh = good_mesh();
  eman_context_info before = {sizeof before, 0, 0, 0, 0, 0, 0}, after = before;
  require("describe", eman_context_describe(context, &before) == EMAN_OK);
  for (int i = 0; i < 20; i++) {
    const eman_status bad = EMAN_E_INVALID_ARGUMENT;
    refused("mesh", create(&p, &f, read_only), bad, "given by the caller");
    refused("report", eman_mesh_examine(mesh, NULL, read_only), bad, "given by the caller");
    refused("context", eman_context_create(NULL, read_only), bad, "given by the caller");
    refused("options", eman_mesh_options_init(read_only, 32), bad, "given by the caller");
    refused("huge options", eman_mesh_options_init(read_only, 0xFFFFFFFF), bad, "struct_size");
    refused("options cut in a field", eman_mesh_options_init(read_only, 18), bad, "struct_size");
  }
  require("describe", eman_context_describe(context, &after) == EMAN_OK);
  require("nothing was kept", before.memory_used == after.memory_used);
  eman_mesh_free(mesh);

  /* A struct of a later version is zeroed beyond what this one knows. */
  struct {
    eman_context_info known;
    int64_t later[20];
  } grown;
  memset(&grown, 0xAA, sizeof grown);
  grown.known.struct_size = sizeof grown;
  require("describe",
          eman_context_describe(context, &grown.known) == EMAN_OK && grown.later[0] == 0 && grown.later[19] == 0);
}

/* Results that the caller's type cannot hold. */
static void overflowing_results(void) {
  double far[12];
  for (int i = 0; i < 12; i++) far[i] = 1e100 * tetrahedron[i];
  const eman_view p = view_of(far, 4, 3, EMAN_FLOAT64), f = view_of(faces, 4, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  require("a large mesh", create(&p, &f, &mesh) == EMAN_OK);
  float narrow[12];
  double wide[12];
  eman_mutable_view out = output(narrow, 4, 3, EMAN_FLOAT32);
  refused("positions", eman_mesh_positions(mesh, &out), EMAN_E_INVALID_ARGUMENT, "float32");
  out = output(wide, 4, 3, EMAN_FLOAT64);
  require("positions", eman_mesh_positions(mesh, &out) == EMAN_OK && memcmp(wide, far, sizeof far) == 0);
  eman_mesh_free(mesh);
}

/* Arguments are checked on an empty mesh as on any other. */
static void empty_mesh(void) {
  const eman_view p = view_of(NULL, 0, 3, EMAN_FLOAT64), f = view_of(NULL, 0, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  require("no vertices", create(&p, &f, &mesh) == EMAN_OK);
  double room[2];
  const eman_mutable_view out = output(room, 1, 2, EMAN_FLOAT64);
  const double nan_power = NAN;
  eman_reltan_options o;
  require("init", eman_reltan_options_init(&o, sizeof o) == EMAN_OK);
  refused("NaN", eman_mesh_reltan(mesh, &nan_power, 1, NULL, NULL, &out), EMAN_E_INVALID_ARGUMENT, "power 0");
  o.space = 99;
  refused("space", eman_mesh_reltan(mesh, &power, 1, &o, NULL, &out), EMAN_E_INVALID_ARGUMENT, "space");
  eman_mesh_free(mesh);
}

static eman_mesh *watched;
static int callback_calls;

static int32_t use_the_library(void *user, double fraction) {
  (void)user;
  (void)fraction;
  int64_t n;
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64);
  callback_calls++;
  require("a call inside a callback", eman_mesh_counts(watched, &n, &n, &n) == EMAN_OK);
  require("an update inside a callback", eman_mesh_update(watched, &p, NULL, NULL) == EMAN_OK);
  refused("an error inside a callback", eman_mesh_counts(NULL, &n, &n, &n), EMAN_E_INVALID_ARGUMENT, "mesh");
  if (callback_calls == 1) {
    eman_mesh_free(watched);
    watched = good_mesh();
  }
  return 0;
}

static void callbacks(void) {
  eman_control control;
  double room[8];
  const eman_mutable_view out = output(room, 4, 2, EMAN_FLOAT64);
  require("init", eman_control_init(&control, sizeof control) == EMAN_OK);
  control.progress = use_the_library;
  watched = good_mesh();
  require("a call with a busy callback", eman_mesh_reltan(watched, &power, 1, NULL, &control, &out) == EMAN_OK);
  require("its last error is its own", eman_last_error()[0] == 0);
  require("the callback was called", callback_calls > 0);
  eman_mesh_free(watched);
}

/* More threads than any machine has. */
static void many_threads(void) {
  eman_context_options o;
  eman_context *c = NULL;
  eman_context_info info = {sizeof info, 0, 0, 0, 0, 0, 0};
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.threads = 1024;
  require("1024 threads", eman_context_create(&o, &c) == EMAN_OK);
  require("a bound", eman_context_describe(c, &info) == EMAN_OK && info.threads >= 16 && info.threads <= 1024);
  eman_context_free(c);
  o.threads = 1025;
  refused("1025 threads", eman_context_create(&o, &c), EMAN_E_INVALID_ARGUMENT, "options.threads");
}

static void wrong_handles(void) {
  eman_mesh *mesh = good_mesh();
  int64_t n;
  eman_context_info info = {sizeof info, 0, 0, 0, 0, 0, 0};
  refused("a mesh as context", eman_context_describe((eman_context *)mesh, &info), EMAN_E_INVALID_ARGUMENT, "context");
  refused("a context as mesh", eman_mesh_counts((eman_mesh *)context, &n, &n, &n), EMAN_E_INVALID_ARGUMENT, "mesh");
  refused("text as mesh", eman_mesh_counts((const eman_mesh *)"abcdefghijklmnopqrstuvwxyz", &n, &n, &n),
          EMAN_E_INVALID_ARGUMENT, "mesh");
  refused("an unmapped handle", eman_mesh_counts((const eman_mesh *)fenced(1), &n, &n, &n), EMAN_E_INVALID_ARGUMENT,
          "");
  eman_mesh_free((eman_mesh *)context); /* nothing happens */
  eman_context_free((eman_context *)mesh);
  eman_mesh_free(NULL);
  eman_context_free(NULL);
  eman_report_free(NULL);
  require("both are still there", eman_mesh_counts(mesh, &n, &n, &n) == EMAN_OK);
  eman_mesh_free(mesh);
}

static int32_t stop_at_half(void *user, double fraction) {
  ++*(int *)user;
  return fraction >= 0.5;
}

static void cancelling(void) {
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64), f = view_of(faces, 4, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  eman_control control;
  volatile int32_t cancel = 1;
  int calls = 0;
  require("init", eman_control_init(&control, sizeof control) == EMAN_OK);
  control.cancel = &cancel;
  refused("cancel word", eman_mesh_create(context, &p, &f, NULL, &control, &mesh), EMAN_E_CANCELLED, "cancel");
  cancel = 0;
  control.progress = stop_at_half;
  control.user = &calls;
  refused("progress", eman_mesh_create(context, &p, &f, NULL, &control, &mesh), EMAN_E_CANCELLED, "cancel");
  require("the progress function was called", calls > 0);
  control.reserved = 3;
  refused("reserved", eman_mesh_create(context, &p, &f, NULL, &control, &mesh), EMAN_E_INVALID_ARGUMENT,
          "control.reserved");
}

static void memory_limit(void) {
  eman_context_options o;
  eman_context *small = NULL;
  require("init", eman_context_options_init(&o, sizeof o) == EMAN_OK);
  o.memory_limit = 500;
  require("a small context", eman_context_create(&o, &small) == EMAN_OK);
  const eman_view p = view_of(tetrahedron, 4, 3, EMAN_FLOAT64), f = view_of(faces, 4, 3, EMAN_INT32);
  eman_mesh *mesh = NULL;
  refused("limit", eman_mesh_create(small, &p, &f, NULL, NULL, &mesh), EMAN_E_NOMEM, "limit of 500");
  /* Rows without memory behind them: 100 million vertices are 19 GB. */
  eman_context_free(small);
  o.memory_limit = INT64_C(1) << 30;
  require("a context", eman_context_create(&o, &small) == EMAN_OK);
  char *zeros = mmap(NULL, (size_t)100000000 * 12, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const eman_view many = view_of(zeros, 100000000, 3, EMAN_FLOAT32);
  refused("19 GB", eman_mesh_create(small, &many, &f, NULL, NULL, &mesh), EMAN_E_NOMEM, "limit");
  eman_context_free(small);
}

static void *one_call(void *arg) {
  double normals[12];
  const eman_mutable_view out = output(normals, 4, 3, EMAN_FLOAT64);
  return eman_mesh_vertex_normals(arg, &out) == EMAN_OK ? NULL : arg;
}

/* Short-lived threads with the smallest stacks. */
static void threads(void) {
  eman_mesh *mesh = good_mesh();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16384);
  for (int i = 0; i < 3000; i++) {
    pthread_t t[4];
    for (int k = 0; k < 4; k++)
      if (pthread_create(&t[k], &attributes, one_call, mesh) != 0) abort();
    for (int k = 0; k < 4; k++) {
      void *failed;
      pthread_join(t[k], &failed);
      require("a call on a small thread", failed == NULL);
    }
  }
  eman_mesh_free(mesh);
}

static void messages(void) {
  int64_t length = 0;
  char text[2048];
  refused("no room", eman_build_info(NULL, 0, &length), EMAN_E_BUFFER_TOO_SMALL, "text");
  require("its length", length > 50);
  refused("no room for the NUL", eman_build_info(text, length, &length), EMAN_E_BUFFER_TOO_SMALL, "text");
  require("just enough", eman_build_info(text, length + 1, &length) == EMAN_OK && (int64_t)strlen(text) == length);
  require("an error is forgotten", eman_last_error()[0] == 0);
  require("names", strcmp(eman_status_name(-200), "EMAN_E_INVALID_MESH") == 0 &&
                       strcmp(eman_status_name(5), "EMAN_E_UNKNOWN") == 0);
  require("finding names",
          strcmp(eman_finding_name(-1), "unknown") == 0 && strcmp(eman_finding_name(4), "boundary_edges") == 0);
  require("version", eman_version() == 10000 * EMAN_VERSION_MAJOR + 100 * EMAN_VERSION_MINOR + EMAN_VERSION_PATCH);
  require("version text", strcmp(eman_version_string(), EMAN_VERSION_STRING) == 0);
  require("ABI", eman_abi_version() == EMAN_ABI_VERSION);
  require("trim", eman_trim() == EMAN_OK);
}

int main(void) {
  require("a context", eman_context_create(NULL, &context) == EMAN_OK);
  bad_indices();
  bad_coordinates();
  bad_views();
  bad_outputs();
  fences();
  bad_options();
  unwritable_outputs();
  overflowing_results();
  empty_mesh();
  callbacks();
  many_threads();
  wrong_handles();
  cancelling();
  memory_limit();
  threads();
  messages();
  eman_context_info info = {sizeof info, 0, 0, 0, 0, 0, 0};
  require("describe", eman_context_describe(context, &info) == EMAN_OK);
  require("nothing is left", info.memory_used == 0);
  eman_context_free(context);
  printf("%d failures\n", failures);
  return failures > 0;
}
