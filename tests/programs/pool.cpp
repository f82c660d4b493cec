// Many meshes on a pool of threads in C++: every thread takes the next mesh,
// builds it and labels it with the one network, all in one context.
//
//   c++ -std=c++17 pool.cpp -leman -pthread && ./a.out
#include <eman.hpp>

#include <atomic>
#include <cmath>
#include <iostream>
#include <mutex>
#include <thread>

namespace {

constexpr int meshes = 200, workers = 4;

// A wavy sheet of n×n vertices. Every fiftieth is broken: it has a face whose
// corner is no vertex.
eman::mesh sheet(const eman::context &context, int number) {
  const int n = 6 + number % 5;
  std::vector<float> positions;
  std::vector<std::int32_t> faces;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      const double height = std::sin(0.9 * i + 0.1 * number) * std::cos(0.7 * j);
      positions.insert(positions.end(), {static_cast<float>(i), static_cast<float>(j), static_cast<float>(height)});
      if (i + 1 == n || j + 1 == n) continue;
      const int a = i * n + j;
      faces.insert(faces.end(), {a, a + n, a + n + 1, a, a + n + 1, a + 1});
    }
  }
  if (number % 50 == 49) faces.back() = n * n;
  return eman::mesh(context, {positions, 3}, {faces, 3});
}

}  // namespace

int main() {
  // The pool's threads are the parallel ones: each call stays on its own.
  eman::context_options options;
  options.threads = 1;
  const eman::context context(options);
  const eman::model model(context, R"({"preset": "default", "classes": 4, "width": 16, "hidden": 16})", 1);

  std::vector<std::vector<std::int32_t>> labels(meshes);
  std::vector<std::string> failures;
  std::mutex mutex;
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int i = next++; i < meshes; i = next++) {
      try {
        labels[static_cast<std::size_t>(i)] = model.predict(sheet(context, i));
      } catch (const eman::error &e) {  // of this mesh; the others go on
        const std::lock_guard<std::mutex> lock(mutex);
        failures.push_back("mesh " + std::to_string(i) + ": " + e.what());
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < workers; i++) pool.emplace_back(work);
  for (auto &thread : pool) thread.join();

  int labelled = 0, different = 0;
  for (int i = 0; i < meshes; i++) {
    const auto &found = labels[static_cast<std::size_t>(i)];
    if (found.empty()) continue;
    labelled++;
    different += model.predict(sheet(context, i)) != found;
  }
  for (const auto &failure : failures) std::cout << failure << "\n";
  std::cout << labelled << " meshes labelled, " << failures.size() << " refused, " << different
            << " different on one thread\n";
  return different == 0 && labelled + static_cast<int>(failures.size()) == meshes ? 0 : 1;
}
