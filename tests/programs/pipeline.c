/* Labels for a stream of meshes, as a plugin of a pipeline computes them: reads
 * meshes on standard input, writes labels on standard output, one record for
 * each, and goes on after a mesh that cannot be labelled.
 *
 *   cc pipeline.c -leman && producer | ./a.out model.safetensors | consumer
 *
 * All numbers are 32 bits in the order of this machine's bytes.
 *   mesh    V, F (unsigned), V×3 float positions, F×3 signed indices of vertices
 *   answer  0, V, V signed labels; or an eman_status, n, n bytes of UTF-8: why not
 * The end of the stream between two meshes is exit status 0, within one 1.
 */
#include <eman.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1 << 24 }; /* vertices, and faces, of a mesh */

/* A buffer that grows to the largest mesh and is kept for the next one. */
typedef struct {
  void *data;
  size_t capacity;
} buffer;

static void *reserve(buffer *b, size_t size) {
  if (b->data != NULL && size <= b->capacity) return b->data;
  void *larger = realloc(b->data, size + 1);
  if (larger == NULL) return NULL;
  b->capacity = size;
  return b->data = larger;
}

static void fail(const char *what) {
  fprintf(stderr, "pipeline: %s\n", what);
  exit(1);
}

static void take(void *data, size_t size) {
  if (fread(data, 1, size, stdin) != size) fail("the stream ends within a mesh");
}

/* Reads past what is not kept. */
static void skip(uint64_t size) {
  char part[4096];
  for (uint64_t n; size > 0; size -= n) take(part, n = size < sizeof part ? size : sizeof part);
}

static void answer(int32_t status, const void *data, uint32_t n, size_t element) {
  if (fwrite(&status, sizeof status, 1, stdout) != 1 || fwrite(&n, sizeof n, 1, stdout) != 1 ||
      fwrite(data, element, n, stdout) != n || fflush(stdout) != 0)
    fail("nobody reads the answers");
}

static void refuse(eman_status status, const char *why) { answer(status, why, (uint32_t)strlen(why), 1); }

static void check(eman_status status) {
  if (status != EMAN_OK) fail(eman_last_error());
}

static eman_model *load(eman_context *context, const char *path) {
  eman_model *model = NULL;
  int64_t length = 0;
  check(eman_model_load(context, path, &model));
  if (eman_model_spec(model, NULL, 0, &length) != EMAN_E_BUFFER_TOO_SMALL) fail(eman_last_error());
  char *spec = malloc((size_t)length + 1);
  if (spec == NULL) fail("no memory");
  check(eman_model_spec(model, spec, length + 1, &length));
  if (strstr(spec, "\"task\":\"segmentation\"") == NULL) fail("the model does not label vertices");
  free(spec);
  return model;
}

/* Labels one mesh; whatever fails, the mesh is freed. */
static void label(eman_context *context, const eman_model *model, const float *positions, uint32_t vertices,
                  const int32_t *faces, uint32_t face_count, int32_t *labels) {
  const eman_view p = {positions, vertices, 3, 0, 0, EMAN_FLOAT32, 0}, f = {faces, face_count, 3, 0, 0, EMAN_INT32, 0};
  const eman_mutable_view out = {labels, vertices, 1, 0, 0, EMAN_INT32, 0};
  eman_mesh *mesh = NULL;
  eman_status status = eman_mesh_create(context, &p, &f, NULL, NULL, &mesh);
  if (status == EMAN_OK) status = eman_model_predict(model, mesh, NULL, &out);
  if (status == EMAN_OK) {
    answer(EMAN_OK, labels, vertices, sizeof *labels);
  } else {
    refuse(status, eman_last_error());
  }
  eman_mesh_free(mesh);
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage: pipeline model.safetensors");
  eman_context *context = NULL;
  check(eman_context_create(NULL, &context));
  eman_model *model = load(context, argv[1]);
  buffer positions = {NULL, 0}, faces = {NULL, 0}, labels = {NULL, 0};

  uint32_t size[2]; /* vertices, faces */
  for (size_t n; (n = fread(size, 1, sizeof size, stdin)) != 0;) {
    if (n != sizeof size) fail("the stream ends within a mesh");
    const uint64_t p = (uint64_t)size[0] * 3 * sizeof(float), f = (uint64_t)size[1] * 3 * sizeof(int32_t);
    if (size[0] > LIMIT || size[1] > LIMIT) {
      skip(p + f);
      refuse(EMAN_E_UNSUPPORTED, "more than 16777216 vertices or faces");
    } else if (!reserve(&positions, p) || !reserve(&faces, f) || !reserve(&labels, p / 3)) {
      skip(p + f);
      refuse(EMAN_E_NOMEM, "no memory for the mesh");
    } else {
      take(positions.data, p);
      take(faces.data, f);
      label(context, model, positions.data, size[0], faces.data, size[1], labels.data);
    }
  }
  if (ferror(stdin)) fail("the stream cannot be read");

  free(labels.data);
  free(faces.data);
  free(positions.data);
  eman_model_free(model);
  eman_context_free(context);
  return 0;
}
