/* Thirty thousand threads of the host, of the smallest stack there is, each
 * make one mesh and compute its features: memory and threads stay. Prints what
 * was resident after a tenth of them and at the end, in kB. */
#include <eman.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 30000, AT_ONCE = 30 };

static eman_context *context;

static void *work(void *failed) {
  static const double positions[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, powers[] = {0.7};
  static const int32_t faces[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2};
  double features[8];
  const eman_view p = {positions, 4, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, 4, 3, 0, 0, EMAN_INT32, 0};
  const eman_mutable_view out = {features, 4, 2, 0, 0, EMAN_FLOAT64, 0};
  eman_mesh *mesh = NULL;
  if (eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) != EMAN_OK ||
      eman_mesh_reltan(mesh, powers, 1, NULL, NULL, &out) != EMAN_OK)
    *(int *)failed = 1;
  eman_mesh_free(mesh);
  return NULL;
}

/* A line of /proc/self/status, such as "VmRSS:". */
static long status(const char *name) {
  char line[256];
  long value = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), "%ld", &value);
  if (file != NULL) fclose(file);
  return value;
}

int main(void) {
  pthread_attr_t attributes;
  static int failed[AT_ONCE];
  if (eman_context_create(NULL, &context) != EMAN_OK) return 2;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0) return 3;
  long resident = 0, threads = 0;
  for (int round = 1; round <= THREADS / AT_ONCE; round++) {
    pthread_t thread[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
      if (pthread_create(&thread[i], &attributes, work, &failed[i]) != 0) return 4;
    for (int i = 0; i < AT_ONCE; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < AT_ONCE; i++)
      if (failed[i]) return 5;
    if (round == THREADS / AT_ONCE / 10) resident = status("VmRSS:"), threads = status("Threads:");
  }
  eman_context_free(context);
  printf("%ld %ld %ld %ld\n", resident, status("VmRSS:"), threads, status("Threads:"));
  return 0;
}
