/* Against a library built to fail on purpose: a panic in a call or in a worker
 * thread is EMAN_E_INTERNAL, a memory fault EMAN_E_INVALID_ARGUMENT, the log
 * gets the stack, and the next call works. */
#include <eman.h>

#include <stdio.h>
#include <string.h>

eman_status eman_test_fault(eman_context *context, int32_t kind);

static char logged[4096];

static void log_message(void *user, int32_t level, const char *message) {
  (void)user;
  if (level == EMAN_LOG_ERROR) snprintf(logged, sizeof logged, "%s", message);
}

int main(void) {
  eman_context_options options;
  eman_context *context;
  if (eman_context_options_init(&options, sizeof options) != EMAN_OK) return 1;
  options.threads = 4;
  options.log = log_message;
  if (eman_context_create(&options, &context) != EMAN_OK) return 2;
  for (int round = 0; round < 50; round++) {
    for (int32_t kind = 0; kind < 3; kind++) {
      logged[0] = 0;
      const eman_status status = eman_test_fault(context, kind);
      if (status != (kind == 2 ? EMAN_E_INVALID_ARGUMENT : EMAN_E_INTERNAL)) {
        printf("kind %d: %s\n", kind, eman_status_name(status));
        return 3;
      }
      if (strstr(logged, "testhook.go") == NULL) {
        printf("kind %d: the log has no stack: \"%s\"\n", kind, logged);
        return 4;
      }
      static const double positions[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
      static const int32_t faces[3] = {0, 1, 2};
      const eman_view p = {positions, 3, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, 1, 3, 0, 0, EMAN_INT32, 0};
      eman_mesh *mesh;
      if (eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) != EMAN_OK) return 5;
      eman_mesh_free(mesh);
    }
  }
  eman_context_free(context);
  puts("150 faults survived");
  return 0;
}
