/* Loads the library in the floating-point environment named by the argument and
 * prints the bits of some features: they must not depend on it.
 *
 *   load_environment LIBRARY nearest|upward|towardzero|flush
 */
#include <eman.h>

#include <dlfcn.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
static void flush_denormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
static void flush_denormals(void) {}
#endif

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  if (strcmp(argv[2], "upward") == 0) fesetround(FE_UPWARD);
  if (strcmp(argv[2], "towardzero") == 0) fesetround(FE_TOWARDZERO);
  if (strcmp(argv[2], "flush") == 0) flush_denormals();
  void *library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  eman_status (*context_create)(const eman_context_options *, eman_context **);
  eman_status (*mesh_create)(eman_context *, const eman_view *, const eman_view *, const eman_mesh_options *,
                             const eman_control *, eman_mesh **);
  eman_status (*reltan)(const eman_mesh *, const double *, int32_t, const eman_reltan_options *, const eman_control *,
                        const eman_mutable_view *);
  *(void **)&context_create = dlsym(library, "eman_context_create");
  *(void **)&mesh_create = dlsym(library, "eman_mesh_create");
  *(void **)&reltan = dlsym(library, "eman_mesh_reltan");

  static const double positions[12] = {0, 0, 0, 1.1, 0, 0, 0, 1.3, 0, 0, 0, 1.7}, powers[3] = {0.7, -2, 0.3};
  static const int32_t faces[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
  const eman_view p = {positions, 4, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, 4, 3, 0, 0, EMAN_INT32, 0};
  uint64_t bits[24];
  const eman_mutable_view out = {bits, 4, 6, 0, 0, EMAN_FLOAT64, 0};
  eman_context *context;
  eman_mesh *mesh;
  if (context_create(NULL, &context) != EMAN_OK || mesh_create(context, &p, &f, NULL, NULL, &mesh) != EMAN_OK ||
      reltan(mesh, powers, 3, NULL, NULL, &out) != EMAN_OK)
    return 1;
  for (int i = 0; i < 24; i++) printf("%016" PRIx64 "\n", bits[i]);
  return 0;
}
