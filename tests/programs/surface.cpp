// Labels of any mesh in C++, with a network on samples of its surface: teaches
// it where a sheet's hill is, labels a finer sheet that it has not seen, moved,
// and prints how the samples and the memory come out.
//
//   c++ -std=c++17 surface.cpp -leman && ./a.out
#include <eman.hpp>

#include <cmath>
#include <iostream>

namespace {

struct example {
  eman::mesh mesh;
  std::vector<std::int32_t> labels;
};

// A sheet of n×n vertices over a square with a hill: 1 on the hill, 0 elsewhere.
example sheet(const eman::context &context, int n, double at) {
  std::vector<double> positions;
  std::vector<std::int32_t> faces, labels;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      const double x = 10.0 * i / n, y = 10.0 * j / n, squared = (x - at) * (x - at) + (y - 5) * (y - 5);
      positions.insert(positions.end(), {x, y + 0.1 * std::sin(x), 3 * std::exp(-0.5 * squared)});
      labels.push_back(squared < 3 ? 1 : 0);
      if (i + 1 == n || j + 1 == n) continue;
      const int a = i * n + j;
      faces.insert(faces.end(), {a, a + n, a + n + 1, a, a + n + 1, a + 1});
    }
  }
  return {eman::mesh(context, {positions, 3}, {faces, 3}), labels};
}

}  // namespace

int main() {
  try {
    const eman::context context;
    const eman::model start(
        context,
        R"({"preset": "surface", "classes": 2, "width": 8, "hidden": 16, "surface": {"points": [300, 80], "blocks": [1, 1, 1]}})",
        1);
    eman::trainer trainer(context, start,
                          R"({"epochs": 8, "learning_rate": 0.01, "augment": {"resample": true, "warp": 0.01}})");
    for (int i = 0; i < 4; i++) {
      const example e = sheet(context, 25 + i, 3 + i);
      trainer.add(e.mesh, e.labels, "sheet " + std::to_string(i));
    }
    const example unseen = sheet(context, 60, 4.4);
    const auto counts = unseen.mesh.counts();
    const bool estimated = trainer.estimate(counts) > start.estimate(counts) &&
                           trainer.estimate_work(counts).seconds > start.estimate_work(counts).seconds;
    trainer.run();

    const eman::model model = trainer.current();
    const eman::mesh moved = unseen.mesh.transform(eman::random_rotation(3), {100, 0, -50}, 2.5);
    const eman_evaluation e = model.evaluate(moved, unseen.labels);
    const double accuracy = static_cast<double>(e.correct) / static_cast<double>(e.labels);

    const eman::model::samples_type samples = model.samples(moved);
    const auto size = model.layer_size(moved, 0);
    const auto neighbors = model.layer_neighbors(moved, 0);
    const bool fits =
        samples.positions.size() == 3 * static_cast<std::size_t>(size.rows) && neighbors.offsets.back() == size.edges;
    std::cout << size.rows << " samples with " << size.edges << " edges, " << e.correct << " of " << e.labels
              << " labels right on an unseen sheet, estimates and sizes fit: " << std::boolalpha << (fits && estimated)
              << "\n";
    return accuracy > 0.95 && fits && estimated ? 0 : 1;
  } catch (const std::exception &e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
