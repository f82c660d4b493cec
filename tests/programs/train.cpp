// Training in C++, without any Python: sheets with a ridge learn where it is,
// the training is interrupted, saved, read back and ended, and the network
// labels a sheet that it has not seen, moved and turned.
//
//   c++ -std=c++17 train.cpp -leman && ./a.out folder
#include <eman.hpp>

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

namespace {

struct example {
  eman::mesh mesh;
  std::vector<std::int32_t> labels;
};

// A sheet of n×n vertices with a ridge: 1 on the ridge, 0 elsewhere; the last
// rows are not labelled.
example sheet(const eman::context &context, int n, double at) {
  std::vector<double> positions;
  std::vector<std::int32_t> faces, labels;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      const double ridge = 3 * std::exp(-0.3 * (j - at) * (j - at));
      positions.insert(positions.end(), {i + 0.1 * std::sin(5.0 * j + at), j + 0.1 * std::cos(7.0 * i), ridge});
      labels.push_back(i + 2 >= n ? -1 : std::abs(j - at) < 3 ? 1 : 0);
      if (i + 1 == n || j + 1 == n) continue;
      const int a = i * n + j;
      faces.insert(faces.end(), {a, a + n, a + n + 1, a, a + n + 1, a + 1});
    }
  }
  return {eman::mesh(context, {positions, 3}, {faces, 3}), labels};
}

void add_all(eman::trainer &trainer, const eman::context &context) {
  for (int i = 0; i < 4; i++) {
    const example e = sheet(context, 18 + i, 5 + 2.3 * i);
    trainer.add(e.mesh, e.labels, "sheet " + std::to_string(i));
  }
  const example e = sheet(context, 17, 8.1);
  trainer.add_validation(e.mesh, e.labels, "validation");
}

std::string content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " folder\n";
    return 2;
  }
  const std::string folder = argv[1];
  try {
    const eman::context context;
    const eman::model start(context, R"({"preset": "default", "classes": 2, "width": 16, "hidden": 32})", 1);
    const std::string description =
        R"({"epochs": 20, "learning_rate": 0.01, "dropout": 0.1, "schedule": "one_cycle", "seed": 3})";

    eman::trainer whole(context, start, description);
    add_all(whole, context);
    whole.run([](const eman_step_info &info) {
      if (info.epoch_ended != 0 && info.epoch % 5 == 0)
        std::cout << "epoch " << info.epoch << ": loss " << info.epoch_loss << ", validation "
                  << info.validation_accuracy << "\n";
      return true;
    });

    // What ends a run leaves the training as it is after the last step.
    eman::trainer part(context, start, description);
    add_all(part, context);
    bool thrown = false;
    try {
      part.run([&](const eman_step_info &info) -> bool {
        if (info.step < 7) return true;
        part.save(folder + "/state");
        throw std::logic_error("no more");
      });
    } catch (const std::logic_error &) {
      thrown = true;
    }
    eman::trainer resumed = eman::trainer::load(context, folder + "/state");
    add_all(resumed, context);
    resumed.run();
    whole.best().save(folder + "/whole");
    resumed.best().save(folder + "/resumed");
    const bool same = content(folder + "/whole") == content(folder + "/resumed");

    const example unseen = sheet(context, 24, 13.7);
    const eman::mesh moved = unseen.mesh.transform(eman::random_rotation(3), {100, 0, -50}, 2.5);
    const eman_evaluation e = whole.best().evaluate(moved, unseen.labels);
    const double accuracy = static_cast<double>(e.correct) / static_cast<double>(e.labels);
    std::cout << e.correct << " of " << e.labels
              << " labels right on an unseen sheet, the same bits after a resumption: " << std::boolalpha << same
              << ", stopped by an exception: " << thrown << "\n";
    return accuracy > 0.9 && same && thrown ? 0 : 1;
  } catch (const std::exception &e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
