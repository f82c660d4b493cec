// Labels of a mesh in C++: makes a network, saves and reads it, predicts on many
// threads with one model, and stops a call through an exception.
//
//   c++ -std=c++17 predict.cpp -leman -pthread && ./a.out model.safetensors
#include <eman.hpp>

#include <cmath>
#include <iostream>
#include <thread>

namespace {

// A wavy sheet of n×n vertices.
eman::mesh sheet(const eman::context &context, int n) {
  std::vector<double> positions;
  std::vector<std::int32_t> faces;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      positions.insert(positions.end(), {i + 0.3 * std::sin(7.0 * j), j + 0.2 * std::cos(5.0 * i), std::sin(0.4 * i)});
      if (i + 1 == n || j + 1 == n) continue;
      const int a = i * n + j;
      faces.insert(faces.end(), {a, a + n, a + n + 1, a, a + n + 1, a + 1});
    }
  }
  return eman::mesh(context, {positions, 3}, {faces, 3});
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " model.safetensors\n";
    return 2;
  }
  try {
    const eman::context context;
    eman::model(context, R"({"preset": "default", "classes": 4, "hidden": 32})", 1).save(argv[1]);
    const eman::model model = eman::model::load(context, argv[1]);

    const eman::mesh mesh = sheet(context, 30);
    const std::vector<std::int32_t> labels = model.predict(mesh);
    std::vector<std::vector<std::int32_t>> again(4);
    std::vector<std::thread> threads;
    for (auto &result : again) threads.emplace_back([&] { result = model.predict(mesh); });
    for (auto &thread : threads) thread.join();
    for (const auto &result : again)
      if (result != labels) throw std::runtime_error("threads disagree");

    // An equivariant network gives a moved mesh the same labels.
    const eman::mesh moved = mesh.transform(eman::random_rotation(3), {100, 0, -50}, 2.5);
    std::size_t different = 0;
    const std::vector<std::int32_t> turned = model.predict(moved);
    for (std::size_t i = 0; i < labels.size(); i++) different += labels[i] != turned[i];

    bool stopped = false;
    try {
      eman::control control;
      control.progress = [](double) -> bool { throw std::logic_error("no more"); };
      model.predict(mesh, control);
    } catch (const std::logic_error &) {
      stopped = true;
    }
    std::cout << labels.size() << " labels, " << different
              << " different after a similarity, stopped by an exception: " << std::boolalpha << stopped << "\n"
              << model.spec().substr(0, 60) << "...\n";
    return different == 0 && stopped ? 0 : 1;
  } catch (const std::exception &e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
