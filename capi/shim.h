/* What the two halves of the C interface, shim.c and the Go files, share. */
#ifndef EMAN_SHIM_H
#define EMAN_SHIM_H

#define EMAN_BUILDING 1
#include "eman.h"

/* What a thread has: the text of its last error, and while it is in a call the
 * floating-point environment that it came with. */
typedef struct emango_error {
  char text[1024];
  uint64_t host_environment;
} emango_error;

void *emango_allocate(int64_t bytes);
void emango_release(void *memory);
void emango_trim_heap(void);
int32_t emango_call_progress(uintptr_t progress, uintptr_t user, double fraction);
int32_t emango_call_step(uintptr_t step, uintptr_t user, const eman_step_info *info);
void emango_call_log(uintptr_t log, uintptr_t user, int32_t level, const char *message);

#endif
