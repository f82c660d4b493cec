// Features of an OBJ file in C++: reads positions and triangles, prints the mesh
// doctor's findings and the length of the longest RelTan vector.
//
//   c++ -std=c++17 features.cpp -leman && ./a.out mesh.obj
#include <eman.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

struct triangles {
  std::vector<double> positions;
  std::vector<std::int32_t> faces;
};

// Vertices and faces of an OBJ file; polygons become fans of triangles.
triangles read_obj(const char *path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  triangles t;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "v") {
      for (int i = 0; i < 3; i++) {
        double x = 0;
        words >> x;
        t.positions.push_back(x);
      }
    } else if (key == "f") {
      std::vector<std::int32_t> corners;
      for (std::string corner; words >> corner;) corners.push_back(std::stoi(corner) - 1);
      for (std::size_t i = 2; i < corners.size(); i++)
        t.faces.insert(t.faces.end(), {corners[0], corners[i - 1], corners[i]});
    }
  }
  return t;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " mesh.obj\n";
    return 2;
  }
  try {
    const triangles t = read_obj(argv[1]);
    const eman::context context;
    eman::mesh_options options;
    options.degenerate = EMAN_DEGENERATE_DROP;
    const eman::mesh mesh(context, {t.positions, 3}, {t.faces, 3}, options);

    const eman::report report = mesh.examine();
    const auto counts = mesh.counts();
    std::cout << counts.vertices << " vertices, " << counts.faces << " faces, " << report.summary().component_count
              << " component(s)\n";
    for (eman_finding f = 0; f < EMAN_FINDING_COUNT; f++)
      if (report.count(f) > 0) std::cout << "  " << report.count(f) << " " << eman_finding_name(f) << "\n";

    const std::vector<double> v = mesh.reltan({0.7});
    double longest = 0;
    for (std::size_t i = 0; i + 1 < v.size(); i += 2) longest = std::max(longest, std::hypot(v[i], v[i + 1]));
    std::cout << "longest RelTan vector (r = 0.7): " << longest << "\n";
  } catch (const std::exception &e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
