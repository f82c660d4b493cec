/* The public side of testhook.go; see there. */
#if defined(EMAN_TEST_HOOKS)
#include "shim.h"
#include "_cgo_export.h"

eman_status eman_test_fault(eman_context *context, int32_t kind) {
  static emango_error error;
  return emango_test_fault(context, kind, &error);
}
#else
typedef int emango_no_test_hooks;
#endif
