/* Features of a mesh in C: builds an icosahedron, computes RelTan features, and
 * shows that they do not change when the mesh is turned, moved and scaled.
 *
 *   cc features.c -leman -lm && ./a.out
 */
#include <eman.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(eman_status status) {
  if (status == EMAN_OK) return;
  fprintf(stderr, "%s: %s\n", eman_status_name(status), eman_last_error());
  exit(1);
}

enum { VERTICES = 12, FACES = 20, POWERS = 2, COLUMNS = 2 * POWERS };

/* An icosahedron; one vertex is pulled out, as a regular one has no features. */
static const double phi = 1.6180339887498949;
static const int32_t faces[FACES][3] = {
    {0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
    {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
    {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1},
};

static void reltan(const eman_mesh *mesh, double features[VERTICES][COLUMNS]) {
  const double powers[POWERS] = {0.5, 0.7};
  const eman_mutable_view out = {features, VERTICES, COLUMNS, 0, 0, EMAN_FLOAT64, 0};
  check(eman_mesh_reltan(mesh, powers, POWERS, NULL, NULL, &out));
}

int main(void) {
  const double positions[VERTICES][3] = {
      {-1, phi, 0},  {1, phi, 0},  {-1, -phi, 0}, {1, -phi, 0},  {0, -1, phi},  {0, 1, phi},
      {0, -1, -phi}, {0, 1, -phi}, {phi, 0, -1},  {2, 0.2, 1.5}, {-phi, 0, -1}, {-phi, 0, 1},
  };
  const eman_view vertex_view = {positions, VERTICES, 3, 0, 0, EMAN_FLOAT64, 0};
  const eman_view face_view = {faces, FACES, 3, 0, 0, EMAN_INT32, 0};

  eman_context *context;
  eman_mesh *mesh, *moved;
  check(eman_context_create(NULL, &context));
  check(eman_mesh_create(context, &vertex_view, &face_view, NULL, NULL, &mesh));

  double rotation[9], features[VERTICES][COLUMNS], again[VERTICES][COLUMNS];
  const double translation[3] = {10, -20, 30};
  check(eman_random_rotation(1, rotation));
  check(eman_mesh_transform(mesh, rotation, translation, 3.5, NULL, &moved));
  reltan(mesh, features);
  reltan(moved, again);

  double largest = 0, difference = 0;
  for (int p = 0; p < VERTICES; p++) {
    for (int i = 0; i < COLUMNS; i++) {
      largest = fmax(largest, fabs(features[p][i]));
      difference = fmax(difference, fabs(features[p][i] - again[p][i]));
    }
  }
  printf("libeman %s: largest feature %.3f, difference after a similarity %.1e\n", eman_version_string(), largest,
         difference);

  eman_mesh_free(moved);
  eman_mesh_free(mesh);
  eman_context_free(context);
  return largest > 0.01 && difference < 1e-12 ? 0 : 1;
}
