/* Asks for a mesh larger than the address space that `ulimit -v` leaves, sees
 * EMAN_E_NOMEM, and computes something small afterwards. */
#define _GNU_SOURCE
#include <eman.h>

#include <stdio.h>
#include <sys/mman.h>

int main(void) {
  eman_context *context;
  eman_mesh *mesh;
  if (eman_context_create(NULL, &context) != EMAN_OK) return 1;

  const int64_t vertices = 30000000; /* 360 MB of the host's, about 3 GB of the library's */
  const float *zeros = mmap(NULL, (size_t)vertices * 12, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == MAP_FAILED) return 2;
  static const int32_t face[3] = {0, 1, 2};
  static const double triangle[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
  const eman_view many = {zeros, vertices, 3, 0, 0, EMAN_FLOAT32, 0}, few = {triangle, 3, 3, 0, 0, EMAN_FLOAT64, 0};
  const eman_view faces = {face, 1, 3, 0, 0, EMAN_INT32, 0};

  const eman_status status = eman_mesh_create(context, &many, &faces, NULL, NULL, &mesh);
  printf("%s: %s\n", eman_status_name(status), eman_last_error());
  if (status != EMAN_E_NOMEM) return 3;

  if (eman_mesh_create(context, &few, &faces, NULL, NULL, &mesh) != EMAN_OK) return 4;
  eman_mesh_free(mesh);
  eman_context_free(context);
  return 0;
}
