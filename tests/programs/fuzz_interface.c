/* Sequences of calls that a fuzzer chooses: each input is read as calls of the
 * C interface with handles of any kind, views of any layout, descriptions and
 * files with errors. What must hold after every call is checked; a violation
 * ends the process.
 *
 * With libFuzzer this is the target (make fuzz). With -DREPLAY it is a program
 * that plays the inputs of a folder again, and names the functions that
 * succeeded in any of them. Left out is what no library can see: freed handles,
 * and arrays that are shorter than their views. */
#define _GNU_SOURCE
#include <eman.h>

#include <dirent.h>
#include <math.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *call = "nothing";

static void require(int condition, const char *law) {
  if (condition) return;
  fprintf(stderr, "%s: %s (last error: \"%s\")\n", call, law, eman_last_error());
  abort();
}

/* ------------------------------------------------------------------ the input */

static const uint8_t *next_byte, *last_byte;

static int byte(void) { return next_byte < last_byte ? *next_byte++ : 0; }
static int below(int n) { return byte() % n; }
static int pair(void) {
  const int high = byte();
  return high * 256 + byte();
}
static uint64_t wide(void) {
  uint64_t x = 0;
  for (int i = 0; i < 8; i++) x = x << 8 | (uint64_t)byte();
  return x;
}

/* Mostly small numbers, so that they coincide; some awkward ones. */
static double real(void) {
  static const double awkward[] = {NAN, INFINITY, -INFINITY, 1e301, 1e299, -1e39, 1e-300, 1e-9};
  const int b = byte();
  return b >= 248 ? awkward[b - 248] : (b - 100) / 4.0;
}

/* ------------------------------------------------------------------ memory lent to a call */

/* Everything that a call may see lies here, blocks between guards that the
 * address sanitizer watches. expected is what must be there after the call, may
 * where the call may write: on success, or also if a buffer was too small. */
enum { ROOM = 1 << 18, GUARD = 64, PATTERN = 0xA5, NEVER = 0, ON_SUCCESS = 1, ALSO_TOO_SMALL = 2 };
static uint8_t room[ROOM], expected[ROOM], may[ROOM];
static size_t used;

static void forget(void) {
  ASAN_UNPOISON_MEMORY_REGION(room, ROOM);
  memset(room, PATTERN, used);
  memset(expected, PATTERN, used);
  memset(may, NEVER, used);
  used = GUARD;
  ASAN_POISON_MEMORY_REGION(room, ROOM);
}

static int fits(int64_t size) { return size >= 0 && size < ROOM - GUARD - 64 - (int64_t)used; }

static void *take(size_t size, int writable) {
  uint8_t *block = room + used;
  require(fits((int64_t)size), "the harness has too little room");
  used = (used + size + GUARD + 63) / 64 * 64;
  ASAN_UNPOISON_MEMORY_REGION(block, size);
  memset(may + (block - room), writable, size);
  return block;
}

static void put_bytes(void *at, const void *bytes, size_t size) {
  memcpy(at, bytes, size);
  memcpy(expected + ((uint8_t *)at - room), bytes, size);
}

static void *lend(const void *bytes, size_t size) {
  void *block = take(size, NEVER);
  put_bytes(block, bytes, size);
  return block;
}

static int64_t *number(void) { return take(8, ON_SUCCESS); }

/* ------------------------------------------------------------------ views */

static const eman_dtype types[] = {EMAN_FLOAT64, EMAN_FLOAT32, EMAN_INT32, EMAN_INT64, EMAN_UINT32};
enum { REALS = 0, INTEGERS = 2 };

static int size_of(eman_dtype type) { return type == EMAN_FLOAT64 || type == EMAN_INT64 ? 8 : 4; }

static uint8_t *element(const eman_mutable_view *v, int64_t i, int64_t j) {
  return (uint8_t *)v->data + i * v->row_stride + j * v->column_stride;
}

/* What was lent to the call, whose results must be finite. */
static eman_mutable_view results[4];
static int result_count;

/* rows × columns elements in a layout of the input's choice. */
static eman_mutable_view layout(int64_t rows, int64_t columns, int kind, int writable) {
  const eman_dtype type = types[kind == REALS ? below(2) : INTEGERS + below(3)];
  const int64_t size = size_of(type);
  eman_mutable_view v = {NULL, rows, columns, columns * size, size, type, 0};
  size_t shift = 0;
  int64_t gap = 0;
  switch (below(6)) {
    case 0: gap = size; break;
    case 1: shift = 1; break; /* misaligned */
    case 2:                   /* column-major */
      v.row_stride = size;
      v.column_stride = rows * size;
      break;
  }
  v.row_stride += gap;
  uint8_t *start = (uint8_t *)take((size_t)(rows * (columns * size + gap)) + shift, NEVER) + shift;
  v.data = start;
  if (below(6) == 1 && rows > 0) { /* upside down */
    v.data = start + (rows - 1) * v.row_stride;
    v.row_stride = -v.row_stride;
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) memset(may + (element(&v, i, j) - room), writable, (size_t)size);
  return v;
}

/* Hands a view out, now and then with an error in it. */
static eman_mutable_view *spoilt(eman_mutable_view v) {
  switch (below(32)) {
    case 1: v.rows = -1; break;
    case 2: v.columns = v.columns + 1; break;
    case 3: v.data = NULL; break;
    case 4: v.dtype = byte(); break;
    case 5: v.row_stride = INT64_MAX; break;
    case 6: v.column_stride = INT64_MIN; break;
    case 7: v.rows = INT64_MAX; break;
    case 8: v.reserved = 1; break;
    case 9: v.columns = 0; break;
    case 10: v.data = (void *)100; break;
    case 11: return NULL;
  }
  /* Where the type changed, elements may be larger than what is there. */
  if (v.dtype > 0 && v.dtype <= EMAN_INT64 && size_of(v.dtype) > 4) {
    const int64_t step = v.column_stride < 0 ? -v.column_stride : v.column_stride;
    if (step == 4 || v.row_stride == 4 || v.row_stride == -4) v.dtype = 0;
  }
  /* A column more than there are is the neighbouring block. */
  return lend(&v, sizeof v);
}

/* A row more or less than there should be, now and then. */
static int64_t nearly(int64_t rows) {
  const int choice = below(24);
  return rows + (choice == 1) - (choice == 2 && rows > 0);
}

static eman_mutable_view *output(int64_t rows, int64_t columns, int kind) {
  if (rows < 0 || columns < 0 || !fits((rows + 3) * (columns + 1) * 8)) return NULL;
  const eman_mutable_view v = layout(nearly(rows), columns, kind, ON_SUCCESS);
  if (result_count < COUNT(results)) results[result_count++] = v;
  return spoilt(v);
}

static void put(const eman_mutable_view *v, int64_t i, int64_t j, double x) {
  const float single = (float)x;
  const int64_t whole = fabs(x) < 1e18 ? (int64_t)x : -1;
  const int32_t half = (int32_t)whole;
  const void *from[] = {&x, &single, &half, &whole, &half};
  for (int k = 0; k < COUNT(types); k++)
    if (types[k] == v->dtype) put_bytes(element(v, i, j), from[k], (size_t)size_of(v->dtype));
}

/* An array of numbers of the input's, or of those of a good one with a few changed. */
static eman_view *input(int64_t rows, int64_t columns, int kind, double (*good)(int64_t i, int64_t j)) {
  if (rows < 0 || !fits((rows + 3) * (columns + 1) * 8)) return NULL;
  rows = nearly(rows);
  const eman_mutable_view v = layout(rows, columns, kind, NEVER);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) put(&v, i, j, good(i, j));
  for (int changes = below(8) - 4; changes > 0 && rows * columns > 0; changes--) {
    const int64_t at = pair() % (rows * columns);
    put(&v, at / columns, at % columns, kind == REALS ? real() : (int8_t)byte());
  }
  return (eman_view *)spoilt(v);
}

static int side; /* of the sheet that meshes are made of */

static double sheet(int64_t i, int64_t j) {
  const double x = (double)(i % side), y = (double)(i / side);
  return j == 0 ? x + 0.1 * y : j == 1 ? y : 0.3 * sin(x + 2 * y);
}
static double triangles(int64_t i, int64_t j) {
  const int64_t quad = i / 2, corner = quad / (side - 1) * side + quad % (side - 1);
  const int64_t corners[2][3] = {{0, 1, side + 1}, {0, side + 1, side}};
  return (double)(corner + corners[i % 2][j]);
}
static double axes(int64_t i, int64_t j) { return i >= 0 && j % 4 == 0; }
static double classes(int64_t i, int64_t j) { return (double)((i + j) % 3); }
static double turns(int64_t i, int64_t j) { return 0.7 * (double)(i + j); }
static int64_t order_of;
static double backwards(int64_t i, int64_t j) { return (double)(order_of - 1 - i - j); }

/* ------------------------------------------------------------------ structs and texts */

/* A struct that begins with struct_size, of any version: shorter, or longer with zeros or more behind. */
static void *versioned(const void *fields, uint32_t size, int writable) {
  uint8_t *block = take(size + 16, NEVER);
  const uint8_t zeros[16] = {0};
  const uint32_t sizes[] = {size, size, size, size, size, 0, 3, 8, size - 8, size + 16, size + 16};
  const int choice = below(COUNT(sizes));
  const uint8_t later = choice == COUNT(sizes) - 1;
  put_bytes(block, fields, size);
  put_bytes(block + size, zeros, sizeof zeros);
  put_bytes(block + size + 9, &later, 1);
  put_bytes(block, &sizes[choice], sizeof sizes[choice]);
  memset(may + (block - room), writable, sizes[choice]);
  return below(32) == 1 ? NULL : block;
}

static void *described(uint32_t size) {
  const uint8_t zeros[256] = {0};
  return versioned(zeros, size, ON_SUCCESS);
}

static char *text(const char *const *list, int count) {
  char line[2048];
  size_t length = strlen(list[0]);
  const int choice = below(count + 2);
  if (choice < count) {
    length = strlen(list[choice]);
    memcpy(line, list[choice], length);
  } else if (choice == count) {
    length = (size_t)byte();
    for (size_t i = 0; i < length; i++) line[i] = (char)byte();
  } else {
    return NULL;
  }
  for (int changes = below(4) == 1 ? 1 + below(8) : 0; changes > 0 && length > 0; changes--) {
    char *changed = &line[(size_t)pair() % length];
    *changed = (char)byte();
  }
  line[length] = 0;
  return lend(line, length + 1);
}

#define SURFACE                                                                                                    \
  "{\"preset\":\"surface\",\"classes\":3,\"width\":4,\"max_order\":1,\"hidden\":4,\"surface\":{\"points\":[12,4]," \
  "\"neighbors\":4,\"scales\":[3,5],\"blocks\":[1,1,1]}}"
static const char *const networks[] = {
    "{\"classes\":3,\"width\":4,\"max_order\":1,\"blocks\":1,\"hidden\":4}",
    "{\"preset\":\"paper\",\"classes\":3,\"width\":4,\"max_order\":1,\"blocks\":1,\"hidden\":4,\"heads\":2}",
    "{\"preset\":\"authors\",\"classes\":3,\"width\":4,\"max_order\":1,\"blocks\":1,\"hidden\":4}",
    "{\"kind\":\"gem\",\"features\":\"get\",\"classes\":3,\"width\":4,\"max_order\":1,\"blocks\":1,\"hidden\":4}",
    "{\"kind\":\"spiral\",\"features\":\"xyz\",\"classes\":3,\"width\":4,\"blocks\":1,\"hidden\":4}",
    "{\"task\":\"classification\",\"classes\":3,\"width\":4,\"blocks\":1,\"hidden\":4,\"max_order\":1}",
    SURFACE,
    "{\"classes\":3,\"width\":4,\"max_order\":1,\"blocks\":1,\"hidden\":4,\"powers\":[0.3,-1e3,700],\"bias\":\"none\"}",
};
static const char *const trainings[] = {
    "{}",
    "{\"epochs\":2,\"optimizer\":\"adamw\",\"weight_decay\":0.1,\"schedule\":\"one_cycle\",\"patience\":1}",
    "{\"epochs\":3,\"meshes_per_step\":2,\"clip_norm\":1,\"dropout\":0.5,\"schedule\":\"cosine\",\"warm_up\":1}",
    "{\"learning_rate\":1e5,\"frozen\":[\"blocks.0.*\"],\"class_weights\":[1,0,2]}",
    "{\"augment\":{\"rotation\":true,\"scale\":0.2,\"stretch\":0.1,\"warp\":0.1,\"noise\":0.1,\"translation\":1}}",
};
static const char *const authors[] = {
    "{\"model\":\"RelTanEMAN\"}",
    "{\"model\":\"SpiralNet\",\"task\":\"classification\"}",
    "{\"model\":\"GemCNN\",\"n_rings\":2,\"max_order\":1}",
};
static char file[64];
static const char *const places[] = {file, "", "/", "/nowhere/at/all", "\xff\xfe"};

/* ------------------------------------------------------------------ objects */

enum kind { CONTEXT, MESH, REPORT, MODEL, TRAINER };
enum { HELD = 12 };
static struct object {
  enum kind kind;
  void *handle;
} held[HELD]; /* the first is a context that stays */
static int held_count;

static void release(int i) {
  switch (held[i].kind) {
    case CONTEXT: eman_context_free(held[i].handle); break;
    case MESH: eman_mesh_free(held[i].handle); break;
    case REPORT: eman_report_free(held[i].handle); break;
    case MODEL: eman_model_free(held[i].handle); break;
    case TRAINER: eman_trainer_free(held[i].handle); break;
  }
  memmove(held + i, held + i + 1, (size_t)(--held_count - i) * sizeof *held);
}

/* An object of the kind, mostly; one of another, or none. */
static void *any(enum kind kind) {
  const int b = byte();
  if (b == 1) return NULL;
  if (b < 12) return held[b % held_count].handle;
  int choice = b % 3;
  void *found = NULL;
  for (int i = held_count - 1; i >= 0 && choice >= 0; i--) {
    if (held[i].kind != kind) continue;
    found = held[i].handle;
    choice--;
  }
  return found;
}

static void *handle(void) { return take(sizeof(void *), ON_SUCCESS); }

static void keep(enum kind kind, void *stored, eman_status status) {
  if (status != EMAN_OK) return;
  if (held_count == HELD) release(1);
  held[held_count].kind = kind;
  memcpy(&held[held_count++].handle, stored, sizeof(void *));
}

/* ------------------------------------------------------------------ callbacks */

static int reports_left, steps_left;
static eman_mesh *watched;

/* Uses the library, and cancels after a while. */
static int32_t progress(void *user, double fraction) {
  int64_t counts[3];
  require(user == &reports_left || user == NULL, "the pointer is the callback's, or one that a shorter struct has not");
  require(fraction >= 0 && fraction <= 1, "progress is a fraction");
  const eman_status status = eman_mesh_counts(watched, &counts[0], &counts[1], &counts[2]);
  require(status == EMAN_OK || status == EMAN_E_INVALID_ARGUMENT, "a call in a callback");
  return reports_left-- <= 0;
}

static int32_t step(void *user, const eman_step_info *info) {
  require(user == &steps_left && isfinite(info->loss), "the loss of a step");
  return --steps_left <= 0;
}

static eman_control *control(void) {
  eman_control c = {.struct_size = sizeof c};
  int32_t cancel = 0;
  reports_left = 1 << 20;
  watched = NULL;
  switch (below(8)) {
    case 1: cancel = 1; break;
    case 2: reports_left = below(16); break;
    case 3: c.reserved = 1; break;
    case 4: break;
    default: return NULL;
  }
  c.cancel = lend(&cancel, sizeof cancel);
  c.progress = progress;
  c.user = &reports_left;
  watched = any(MESH);
  return versioned(&c, sizeof c, NEVER);
}

/* ------------------------------------------------------------------ laws */

/* Functions whose outputs may hold part of a result after a failure. */
static int writes_in_place(void) {
  return strncmp(call, "eman_mesh_reltan(", 17) == 0 || strncmp(call, "eman_model_logits(", 18) == 0 ||
         strstr(eman_last_error(), "too large for float32") != NULL;
}

static const char *succeeded[128]; /* calls, each once */

static void note_success(void) {
  int i = 0;
  while (succeeded[i] != NULL && succeeded[i] != call) i++;
  succeeded[i] = call;
}

static eman_status judge(eman_status status) {
  require(strcmp(eman_status_name(status), "EMAN_E_UNKNOWN") != 0, "the status is known");
  require(status != EMAN_E_INTERNAL && status != EMAN_E_FORKED, "no fault of the library");
  require((status == EMAN_OK) == (eman_last_error()[0] == 0), "a message if the call failed, and only then");
  const int written = status == EMAN_OK || writes_in_place() ? ON_SUCCESS
                      : status == EMAN_E_BUFFER_TOO_SMALL    ? ALSO_TOO_SMALL
                                                             : ALSO_TOO_SMALL + 1;
  ASAN_UNPOISON_MEMORY_REGION(room, ROOM);
  for (size_t i = 0; i < used; i++) {
    require(room[i] == expected[i] || (may[i] != NEVER && may[i] >= written),
            "a byte was written that is not an output's");
  }
  for (int k = 0; k < result_count && status == EMAN_OK; k++) {
    const eman_mutable_view *v = &results[k];
    for (int64_t at = 0; at < v->rows * v->columns; at++) {
      double x = 0;
      float single = 0;
      const uint8_t *from = element(v, at / v->columns, at % v->columns);
      if (v->dtype == EMAN_FLOAT64) memcpy(&x, from, sizeof x);
      if (v->dtype == EMAN_FLOAT32) memcpy(&single, from, sizeof single);
      require(isfinite(x) && isfinite(single), "results are finite");
    }
  }
  if (status == EMAN_OK) note_success();
  return status;
}

/* ------------------------------------------------------------------ calls */

#define TRY(expression) (call = #expression, judge(expression))

static eman_mesh_options *mesh_options(int64_t vertices) {
  eman_mesh_options o;
  require(eman_mesh_options_init(&o, sizeof o) == EMAN_OK, "options");
  switch (below(4)) {
    case 0: return NULL;
    case 1: o.gauge = EMAN_GAUGE_RANDOM; break;
    case 2:
      o.gauge = EMAN_GAUGE_CUSTOM;
      o.frames = input(vertices, 9, REALS, axes);
      break;
    case 3: o.gauge = below(5); break;
  }
  o.normals = below(3);
  o.degenerate = below(3);
  o.seed = wide();
  return versioned(&o, sizeof o, NEVER);
}

static void call_mesh(int which) {
  eman_mesh *mesh = any(MESH);
  int64_t vertices = 0, faces = 0, edges = 0;
  if (eman_mesh_counts(mesh, &vertices, &faces, &edges) != EMAN_OK) vertices = faces = edges = below(8);
  eman_mutable_view *out, *second;
  void *made = handle();
  switch (which) {
    case 0: {
      side = 2 + below(4);
      const int cloud = below(12) == 1;
      const int64_t count = side * side - (below(12) == 1) * side;
      eman_context *context = any(CONTEXT);
      const eman_view *p = input(below(24) == 1 ? 0 : count, 3, REALS, sheet);
      const eman_view *f = input(cloud ? 0 : 2 * (side - 1) * (side - 1), 3, INTEGERS, triangles);
      const eman_mesh_options *options = mesh_options(count);
      const eman_control *c = control();
      keep(MESH, made, TRY(eman_mesh_create(context, p, f, options, c, made)));
      break;
    }
    case 1: {
      const eman_view *p = input(vertices, 3, REALS, sheet), *frames = NULL;
      if (below(4) == 1) frames = input(vertices, 9, REALS, axes);
      const eman_control *c = control();
      TRY(eman_mesh_update(mesh, p, frames, c));
      break;
    }
    case 2: TRY(eman_mesh_counts(mesh, number(), number(), number())); break;
    case 3: out = output(vertices, 3, REALS), TRY(eman_mesh_positions(mesh, out)); break;
    case 4: out = output(faces, 3, INTEGERS), TRY(eman_mesh_faces(mesh, out)); break;
    case 5: out = output(vertices, 3, REALS), TRY(eman_mesh_vertex_normals(mesh, out)); break;
    case 6: out = output(vertices, 9, REALS), TRY(eman_mesh_frames(mesh, out)); break;
    case 7:
      out = output(vertices + 1, 1, INTEGERS);
      second = output(edges, 1, INTEGERS);
      TRY(eman_mesh_neighbors(mesh, out, second));
      break;
    case 8: out = output(edges, 1, INTEGERS), TRY(eman_mesh_reverse_edges(mesh, out)); break;
    case 9: out = output(edges, 1, REALS), TRY(eman_mesh_edge_angles(mesh, out)); break;
    case 10: out = output(edges, 1, REALS), TRY(eman_mesh_transport_angles(mesh, out)); break;
    case 11: {
      double powers[4];
      const int count = below(5), space = below(3);
      for (int i = 0; i < count; i++) powers[i] = real();
      eman_reltan_options o;
      require(eman_reltan_options_init(&o, sizeof o) == EMAN_OK, "options");
      o.space = space;
      if (below(3) == 1) o.degree_power = real();
      if (below(3) == 1) o.constant = real();
      const eman_reltan_options *options = versioned(&o, sizeof o, NEVER);
      const double *list = lend(powers, (size_t)count * sizeof *powers);
      out = output(vertices, count * (2 + (space == EMAN_SPACE_AMBIENT)), REALS);
      const eman_control *c = control();
      TRY(eman_mesh_reltan(mesh, list, count, options, c, out));
      break;
    }
    case 12: out = output(vertices, 3, REALS), TRY(eman_mesh_get_features(mesh, out)); break;
    case 13: out = output(vertices, 1, INTEGERS), TRY(eman_mesh_components(mesh, out, number())); break;
    case 14: {
      const eman_control *c = control();
      keep(REPORT, made, TRY(eman_mesh_examine(mesh, c, made)));
      break;
    }
    case 15: {
      const eman_view *angles = input(vertices, 1, REALS, turns);
      const eman_control *c = control();
      keep(MESH, made, TRY(eman_mesh_change_gauge(mesh, angles, c, made)));
      break;
    }
    case 16: {
      double motion[12] = {0, 1, 0, -1, 0, 0, 0, 0, 1, 3, 4, 5};
      if (below(3) == 1) motion[below(12)] = real();
      const double *rotation = lend(motion, 72), *translation = lend(motion + 9, 24), scale = real();
      const eman_control *c = control();
      keep(MESH, made, TRY(eman_mesh_transform(mesh, rotation, translation, scale, c, made)));
      break;
    }
    default: {
      order_of = vertices;
      const eman_view *vertex_order = input(vertices, 1, INTEGERS, backwards), *face_order = NULL, *shift = NULL;
      order_of = faces;
      if (below(2)) face_order = input(faces, 1, INTEGERS, backwards);
      if (below(2)) shift = input(faces, 1, INTEGERS, classes);
      const eman_control *c = control();
      keep(MESH, made, TRY(eman_mesh_permute(mesh, vertex_order, face_order, shift, c, made)));
    }
  }
}

static void call_report(int which) {
  const eman_report *report = any(REPORT);
  const eman_finding finding = below(16) - 1;
  int64_t count = 0;
  int32_t width = 1;
  switch (which) {
    case 0: TRY(eman_report_summarize(report, described(sizeof(eman_report_summary)))); break;
    case 1: TRY(eman_report_count(report, finding, number(), take(4, ON_SUCCESS))); break;
    default: {
      if (eman_report_count(report, finding, &count, &width) != EMAN_OK) count = 1;
      const eman_mutable_view *out = output(count, width, INTEGERS);
      TRY(eman_report_indices(report, finding, out));
    }
  }
}

/* Room for a text or file, and its length. */
static void *buffer(int64_t *capacity, int64_t **length) {
  const int64_t sizes[] = {0, 1, 100, 4000, 100000, -1, INT64_MIN};
  *capacity = sizes[below(COUNT(sizes))];
  *length = take(8, ALSO_TOO_SMALL);
  if (*capacity <= 0 && below(2)) return NULL;
  return take(*capacity > 0 ? (size_t)*capacity : 0, ON_SUCCESS);
}

/* A file that the library wrote, cut and changed by the input. */
static int64_t damage(uint8_t *content, int64_t size) {
  if (below(4) == 1) size = size * byte() / 256;
  for (int changes = below(3) == 1 ? 1 + below(6) : 0; changes > 0 && size > 0; changes--) {
    const int64_t at = below(2) ? pair() * 4 : pair() / 32; /* the header comes first */
    content[at % size] = (uint8_t)byte();
  }
  return size;
}

/* A path to read, mostly that of the file as it is or damaged. */
static const char *damaged_file(void) {
  uint8_t content[1 << 16];
  const int choice = below(4);
  FILE *f = choice == 1 ? fopen(file, "r+b") : NULL;
  if (choice == 2) return text(places, COUNT(places));
  if (f != NULL) {
    const int64_t size = (int64_t)fread(content, 1, sizeof content, f), left = damage(content, size);
    rewind(f);
    require(fwrite(content, 1, (size_t)left, f) == (size_t)left && ftruncate(fileno(f), left) == 0,
            "the harness writes");
    fclose(f);
  }
  return lend(file, strlen(file) + 1);
}

/* A tensor of the model, or one that is nearly so. */
static eman_tensor *tensors(const eman_model *model, int32_t *count) {
  static eman_tensor made[3];
  *count = below(3);
  for (int i = 0; i < *count; i++) {
    eman_parameter_info info = {.struct_size = sizeof info};
    if (eman_model_describe_parameter(model, byte() % 24, &info) != EMAN_OK || !fits(info.size * 8 + 1024))
      info.size = 0;
    const int changed = below(12);
    if (changed == 1) info.shape[0]++;
    if (changed == 2) info.name[0] = '?';
    const int64_t elements = changed == 1 ? 2 * info.size : info.size;
    const eman_dtype type = changed == 3 ? (eman_dtype)byte() : types[below(2)];
    float *data = take((size_t)elements * 8 + 8, NEVER);
    const float values[3] = {0, 0.5f, below(12) == 1 ? NAN : -1};
    for (int64_t k = 0; k < 2 * elements; k++) put_bytes(data + k, &values[k % 3], sizeof *values);
    made[i].name = lend(info.name, sizeof info.name);
    made[i].data = changed == 4 ? NULL : data;
    made[i].shape = lend(info.shape, sizeof info.shape);
    made[i].rank = changed == 5 ? byte() - 100 : info.rank;
    made[i].dtype = type;
    /* Beyond the four sizes that a shape has here there is nothing to read. */
    if (made[i].rank > 4 && made[i].rank <= 8) made[i].rank = 9;
  }
  return lend(made, sizeof made);
}

static void call_model(int which) {
  eman_model *model = any(MODEL);
  void *made = handle();
  int64_t capacity, *length;
  switch (which) {
    case 0: {
      eman_context *context = any(CONTEXT);
      const char *description = text(networks, COUNT(networks));
      const uint64_t seed = wide();
      keep(MODEL, made, TRY(eman_model_create(context, description, seed, made)));
      return;
    }
    case 1: {
      eman_context *context = any(CONTEXT);
      if (below(2) && eman_model_save(model, file) != EMAN_OK) return;
      const char *path = damaged_file();
      keep(MODEL, made, TRY(eman_model_load(context, path, made)));
      return;
    }
    case 2: {
      int64_t size = 0;
      eman_context *context = any(CONTEXT);
      if (eman_model_save_memory(model, NULL, 0, &size) != EMAN_E_BUFFER_TOO_SMALL || !fits(size)) return;
      uint8_t *content = malloc((size_t)size);
      require(eman_model_save_memory(model, content, size, &size) == EMAN_OK, "a model is written to memory");
      const int64_t left = damage(content, size);
      const void *lent = lend(content, (size_t)left);
      free(content);
      keep(MODEL, made, TRY(eman_model_load_memory(context, lent, left, made)));
      return;
    }
    case 3: {
      int32_t count;
      eman_context *context = any(CONTEXT);
      const char *config = text(authors, COUNT(authors));
      const eman_tensor *list = tensors(model, &count);
      keep(MODEL, made, TRY(eman_model_from_authors(context, config, list, count, made)));
      return;
    }
    case 4: {
      const char *path = places[below(COUNT(places) - 1)];
      TRY(eman_model_save(model, path));
      return;
    }
    case 5: {
      void *data = buffer(&capacity, &length);
      TRY(eman_model_save_memory(model, data, capacity, length));
      return;
    }
    case 6: {
      char *written = buffer(&capacity, &length);
      TRY(eman_model_spec(model, written, capacity, length));
      return;
    }
    case 7: TRY(eman_model_parameter_count(model, take(4, ON_SUCCESS))); return;
    case 8: {
      const int32_t index = (int8_t)byte();
      TRY(eman_model_describe_parameter(model, index, described(sizeof(eman_parameter_info))));
      return;
    }
    case 9: {
      eman_parameter_info info = {.struct_size = sizeof info};
      const int32_t index = byte() % 24;
      if (eman_model_describe_parameter(model, index, &info) != EMAN_OK) info.size = 1;
      const eman_mutable_view *values = output(info.size, 1, REALS);
      TRY(eman_model_get_parameter(model, index, values));
      return;
    }
    case 10: {
      int32_t count;
      const eman_tensor *list = tensors(model, &count);
      TRY(eman_model_set_parameters(model, list, count));
      return;
    }
    case 11: TRY(eman_model_layer_count(model, take(4, ON_SUCCESS))); return;
    case 12: {
      const int32_t layer = (int8_t)byte();
      TRY(eman_model_describe_layer(model, layer, described(sizeof(eman_layer_info))));
      return;
    }
    default: {
      const int64_t vertices = (int64_t)wide(), edges = (int64_t)wide();
      if (below(2))
        TRY(eman_model_estimate(model, vertices, edges, number()));
      else
        TRY(eman_model_estimate_work(model, vertices, edges, described(sizeof(eman_work))));
    }
  }
}

static void call_inference(int which) {
  const eman_model *model = any(MODEL);
  const eman_mesh *mesh = any(MESH);
  int64_t rows = 0, edges = 0, unused;
  if (eman_mesh_counts(mesh, &rows, &edges, &unused) != EMAN_OK) rows = below(8);
  if (which < 4 && below(4) == 1) rows = 1; /* classification */
  const int32_t layer = (int8_t)byte() % 16;
  eman_layer_info info = {.struct_size = sizeof info};
  if (which >= 5) {
    if (eman_model_describe_layer(model, layer, &info) != EMAN_OK) info.channels = info.heads = 1;
    if (eman_model_layer_size(model, mesh, layer, NULL, &rows, &edges) != EMAN_OK) rows = edges = below(4);
  }
  const eman_control *c = control();
  const eman_mutable_view *out, *second = NULL;
  switch (which) {
    case 0: out = output(rows, 1, INTEGERS), TRY(eman_model_predict(model, mesh, c, out)); break;
    case 1: {
      const int32_t k = below(5);
      out = output(rows, k, INTEGERS);
      second = output(rows, k, REALS);
      TRY(eman_model_top(model, mesh, k, c, out, second));
      break;
    }
    case 2: out = output(rows, 3, REALS), TRY(eman_model_logits(model, mesh, c, out)); break;
    case 3: {
      const eman_view *labels = input(rows, 1, INTEGERS, classes);
      if (below(2)) second = output(3, 3, INTEGERS);
      TRY(eman_model_evaluate(model, mesh, labels, c, described(sizeof(eman_evaluation)), second));
      break;
    }
    case 4: TRY(eman_model_layer_size(model, mesh, layer, c, number(), number())); break;
    case 5:
      out = output(rows + 1, 1, INTEGERS);
      second = output(edges, 1, INTEGERS);
      TRY(eman_model_layer_neighbors(model, mesh, layer, c, out, second));
      break;
    case 6:
      out = output(rows, 3, REALS);
      second = output(rows, 3, REALS);
      TRY(eman_model_samples(model, mesh, c, out, second));
      break;
    case 7: out = output(edges, info.heads, REALS), TRY(eman_model_attention(model, mesh, layer, c, out)); break;
    default:
      out = output(rows, (int64_t)info.channels * (2 * info.order + 1), REALS);
      TRY(eman_model_features(model, mesh, layer, c, out));
  }
}

static void call_trainer(int which) {
  eman_trainer *trainer = any(TRAINER);
  void *made = handle();
  switch (which) {
    case 0: {
      eman_context *context = any(CONTEXT);
      const eman_model *model = any(MODEL);
      const char *description = text(trainings, COUNT(trainings));
      keep(TRAINER, made, TRY(eman_trainer_create(context, model, description, made)));
      break;
    }
    case 1: {
      eman_context *context = any(CONTEXT);
      if (below(2) && eman_trainer_save(trainer, file) != EMAN_OK) return;
      const char *path = damaged_file();
      keep(TRAINER, made, TRY(eman_trainer_load(context, path, made)));
      break;
    }
    case 2:
    case 3: {
      const eman_mesh *mesh = any(MESH);
      int64_t vertices = 1, unused;
      if (below(6) != 1 && eman_mesh_counts(mesh, &vertices, &unused, &unused) != EMAN_OK) vertices = 1;
      const eman_view *labels = input(vertices, 1, INTEGERS, classes);
      const char *name = text(places, COUNT(places));
      const int32_t validation = below(4) == 1;
      TRY(eman_trainer_add_mesh(trainer, mesh, labels, name, validation));
      break;
    }
    case 4: {
      const eman_control *c = control();
      steps_left = 1 + below(4);
      TRY(eman_trainer_run(trainer, c, step, &steps_left));
      break;
    }
    case 5: {
      const eman_control *c = control();
      TRY(eman_trainer_step(trainer, c, described(sizeof(eman_step_info))));
      break;
    }
    case 6: {
      const int64_t vertices = (int64_t)wide(), edges = (int64_t)wide();
      if (below(2))
        TRY(eman_trainer_estimate(trainer, vertices, edges, number()));
      else
        TRY(eman_trainer_estimate_work(trainer, vertices, edges, described(sizeof(eman_work))));
      break;
    }
    case 7: {
      int64_t capacity, *length;
      char *written = buffer(&capacity, &length);
      TRY(eman_trainer_state(trainer, written, capacity, length));
      break;
    }
    case 8: {
      const int32_t best = below(3);
      keep(MODEL, made, TRY(eman_trainer_model(trainer, best, made)));
      break;
    }
    default: TRY(eman_trainer_save(trainer, file));
  }
}

static void call_others(int which) {
  const eman_context *context = any(CONTEXT);
  void *made = handle();
  const int rows = below(20);
  const eman_mutable_view *out;
  switch (which) {
    case 0: {
      eman_context_options o;
      require(eman_context_options_init(&o, sizeof o) == EMAN_OK, "options");
      o.threads = (int8_t)byte() % 4;
      o.memory_limit = below(4) == 1 ? byte() * 64 : 1 << 23;
      o.instruction_set = below(7) == 1 ? byte() : EMAN_ISA_AUTO;
      const eman_context_options *options = versioned(&o, sizeof o, NEVER);
      keep(CONTEXT, made, TRY(eman_context_create(options, made)));
      break;
    }
    case 1: TRY(eman_context_describe(context, described(sizeof(eman_context_info)))); break;
    case 2: {
      int64_t capacity, *length;
      char *written = buffer(&capacity, &length);
      TRY(eman_build_info(written, capacity, length));
      break;
    }
    case 3: {
      const uint64_t seed = wide();
      out = output(rows, 1, REALS);
      TRY(eman_random_angles(seed, out));
      break;
    }
    case 4: {
      const uint64_t seed = wide();
      TRY(eman_random_rotation(seed, take(72, ON_SUCCESS)));
      break;
    }
    case 5: {
      const uint64_t seed = wide();
      out = output(rows, 1, INTEGERS);
      TRY(eman_random_permutation(seed, out));
      break;
    }
    case 6: TRY(eman_trim()); break;
    case 7: /* to free an object of another kind, or nothing, does nothing */
      eman_mesh_free(held[0].handle);
      eman_report_free(held[0].handle);
      eman_model_free(held[0].handle);
      eman_trainer_free(NULL);
      eman_context_free(NULL);
      break;
    case 8: { /* options of any version */
      const uint32_t size = below(8) == 1 ? (uint32_t)wide() : 8 * (uint32_t)below(9);
      void *options = take(size <= 4096 ? size : 0, ON_SUCCESS);
      switch (below(4)) {
        case 0: TRY(eman_context_options_init(options, size)); break;
        case 1: TRY(eman_control_init(options, size)); break;
        case 2: TRY(eman_mesh_options_init(options, size)); break;
        default: TRY(eman_reltan_options_init(options, size));
      }
      break;
    }
    default:
      if (held_count > 1) release(1 + below(held_count - 1));
  }
}

/* One object of each kind, so that short inputs reach far. */
static void begin(void) {
  eman_context_options options;
  eman_context *context;
  eman_mesh *mesh;
  eman_report *report;
  eman_model *model;
  eman_trainer *trainer;
  double positions[16][3];
  int32_t faces[18][3], labels[16];
  side = 4;
  for (int i = 0; i < 48; i++) positions[i / 3][i % 3] = sheet(i / 3, i % 3);
  for (int i = 0; i < 54; i++) faces[i / 3][i % 3] = (int32_t)triangles(i / 3, i % 3);
  for (int i = 0; i < 16; i++) labels[i] = i % 3;
  const eman_view p = {positions, 16, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, 18, 3, 0, 0, EMAN_INT32, 0};
  const eman_view known = {labels, 16, 1, 0, 0, EMAN_INT32, 0};
  call = "the beginning";
  require(eman_context_options_init(&options, sizeof options) == EMAN_OK, "options");
  options.threads = 2;
  options.memory_limit = 1 << 25;
  require(eman_context_create(&options, &context) == EMAN_OK, "a context");
  require(eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) == EMAN_OK, "a mesh");
  require(eman_mesh_examine(mesh, NULL, &report) == EMAN_OK, "a report");
  require(eman_model_create(context, networks[below(7)], 1, &model) == EMAN_OK, "a model");
  require(eman_trainer_create(context, model, trainings[below(3)], &trainer) == EMAN_OK, "a training");
  const eman_status added = eman_trainer_add_mesh(trainer, mesh, &known, NULL, 0);
  require(added == EMAN_OK || added == EMAN_E_INVALID_ARGUMENT, "a mesh to learn from");
  const struct object all[] = {{CONTEXT, context}, {MESH, mesh}, {REPORT, report}, {MODEL, model}, {TRAINER, trainer}};
  memcpy(held, all, sizeof all);
  held_count = COUNT(all);
}

static void one_call(void) {
  static void (*const groups[])(int) = {call_mesh, call_report, call_model, call_inference, call_trainer, call_others};
  static const int sizes[] = {18, 3, 14, 9, 10, 10};
  const int group = below(COUNT(groups)), which = below(sizes[group]);
  forget();
  result_count = 0;
  call = "choosing arguments";
  groups[group](which);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  next_byte = data;
  last_byte = data + size;
  if (file[0] == 0)
    snprintf(file, sizeof file, "%s/eman-fuzz-%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
  unlink(file);
  begin();
  for (int i = 0; i < 64 && next_byte < last_byte; i++) one_call();

  /* All that is left behind is freed, and nothing remains of it. */
  call = "the end";
  for (int i = held_count - 1; i > 0; i--)
    if (held[i].kind != CONTEXT) release(i);
  for (int i = 0; i < held_count; i++) {
    eman_context_info info = {.struct_size = sizeof info};
    require(eman_context_describe(held[i].handle, &info) == EMAN_OK, "a context is described");
    if (info.memory_used > 0) require(eman_trim() == EMAN_OK, "what is kept for later calls is freed");
    require(eman_context_describe(held[i].handle, &info) == EMAN_OK, "a context is described");
    require(info.memory_used == 0, "memory is left");
  }
  while (held_count > 0) release(held_count - 1);
  unlink(file);
  return 0;
}

#ifdef REPLAY
int main(int argc, char **argv) {
  int played = 0;
  DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
  if (folder == NULL || chdir(argv[1]) != 0) return 1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    static uint8_t content[1 << 16];
    FILE *f = entry->d_name[0] == '.' ? NULL : fopen(entry->d_name, "rb");
    if (f == NULL) continue;
    const size_t size = fread(content, 1, sizeof content, f);
    fclose(f);
    fprintf(stderr, "%s\n", entry->d_name); /* the last one before a crash */
    LLVMFuzzerTestOneInput(content, size);
    played++;
  }
  closedir(folder);
  for (int i = 0; succeeded[i] != NULL; i++) printf("%.*s\n", (int)strcspn(succeeded[i], "("), succeeded[i]);
  printf("%d inputs\n", played);
  return played == 0;
}
#endif
