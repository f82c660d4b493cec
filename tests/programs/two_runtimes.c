/* Another Go library beside this one: each has a runtime of its own, and both
 * answer on the same threads. */
#include <eman.h>

#include <pthread.h>
#include <stdio.h>

long long another_sum(int n);

static eman_context *context;

static void *work(void *wrong) {
  static const double positions[9] = {0, 0, 0, 3, 0, 0, 0, 4, 0};
  static const int32_t faces[3] = {0, 1, 2};
  const eman_view p = {positions, 3, 3, 0, 0, EMAN_FLOAT64, 0}, f = {faces, 1, 3, 0, 0, EMAN_INT32, 0};
  for (int round = 0; round < 200; round++) {
    eman_mesh *mesh = NULL;
    int64_t vertices = 0, triangles = 0, edges = 0;
    if (another_sum(10000) != 49995000LL || eman_mesh_create(context, &p, &f, NULL, NULL, &mesh) != EMAN_OK ||
        eman_mesh_counts(mesh, &vertices, &triangles, &edges) != EMAN_OK || edges != 6)
      *(int *)wrong = 1;
    eman_mesh_free(mesh);
  }
  return NULL;
}

int main(void) {
  enum { THREADS = 8 };
  pthread_t thread[THREADS];
  int wrong[THREADS] = {0}, sum = 0;
  if (eman_context_create(NULL, &context) != EMAN_OK) return 2;
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&thread[i], NULL, work, &wrong[i]) != 0) return 3;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    sum += wrong[i];
  }
  eman_context_free(context);
  printf("%d wrong\n", sum);
  return 0;
}
