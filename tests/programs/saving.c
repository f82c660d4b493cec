/* Saves two models, or two trainings, in turn under one name, until it is
 * killed:
 *
 *     saving model|training PATH
 *
 * First writes PATH.0 and PATH.1, what PATH may hold, and says how many seconds
 * that took. With a third argument it saves the second once, where the disk is
 * too small for it, and says what came of it: that is a status naming the file,
 * and the first one still under its name. */
#define _POSIX_C_SOURCE 200809L
#include <eman.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static eman_context *context;

/* A description of each; the second is the larger. */
static const char *const descriptions[] = {"{\"blocks\": 1, \"width\": 2, \"classes\": 4, \"hidden\": 8}",
                                           "{\"blocks\": 1, \"width\": 2, \"classes\": 9, \"hidden\": 4000}"};

static eman_model *models[2];
static eman_trainer *trainers[2];

static int create(int training) {
  for (int i = 0; i < 2; i++) {
    if (eman_model_create(context, descriptions[i], (uint64_t)i, &models[i]) != EMAN_OK) return 0;
    if (training && eman_trainer_create(context, models[i], "{}", &trainers[i]) != EMAN_OK) return 0;
  }
  return 1;
}

static eman_status save(int training, int which, const char *path) {
  return training ? eman_trainer_save(trainers[which], path) : eman_model_save(models[which], path);
}

int main(int argc, char **argv) {
  char path[4096];
  if (argc < 3 || eman_context_create(NULL, &context) != EMAN_OK) return 2;
  const int training = strcmp(argv[1], "training") == 0;
  if (!create(training)) return 3;
  if (argc > 3) {
    if (save(training, 0, argv[2]) != EMAN_OK) return 4;
    const eman_status status = save(training, 1, argv[2]);
    printf("%s: %s\n", eman_status_name(status), eman_last_error());
    return 0;
  }
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s.%d", argv[2], i);
    if (save(training, i, path) != EMAN_OK) return 5;
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%.9f\n", (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
  fflush(stdout);
  for (int i = 0;; i = !i) {
    if (save(training, i, argv[2]) != EMAN_OK) {
      puts(eman_last_error());
      return 6;
    }
  }
}
