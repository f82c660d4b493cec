/* A handle that points to memory that is not there is an error, also where the
 * tests of every pointer (tests/interface) do not run. */
#include <eman.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  int failures = 0;
  for (int i = 0; i < 3; i++) {
    int64_t vertices, faces, edges;
    const eman_mesh *nowhere = (const eman_mesh *)(uintptr_t)0x123456789000;
    if (eman_mesh_counts(nowhere, &vertices, &faces, &edges) != EMAN_E_INVALID_ARGUMENT) failures++;
    if (strstr(eman_last_error(), "memory at 0x123456789000") == NULL) failures++;
    eman_context *context = NULL;
    if (eman_context_create(NULL, &context) != EMAN_OK) failures++;
    eman_context_free(context);
  }
  printf("%d failures\n", failures);
  return failures != 0;
}
