// Eigen's and libigl's matrices as they are: column-major V×3 positions and F×3
// faces, row-major maps and blocks go to the library, and results come back into
// such matrices. What this thread allocates meanwhile is counted.
//
//   c++ -std=c++17 -I/usr/include/eigen3 eigen.cpp -leman && ./a.out
#include <eman.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <new>

namespace {

// The largest piece of memory that this thread asked for. What the library itself
// keeps of a mesh is in memory that it takes from the system directly.
thread_local std::size_t largest = 0;

}  // namespace

// glibc's own; operator new and Eigen come to the one below.
extern "C" void *__libc_malloc(std::size_t size) noexcept;
extern "C" void *malloc(std::size_t size) noexcept {
  largest = std::max(largest, size);
  return __libc_malloc(size);
}

namespace {

using row_major = Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::RowMajor>;

// A wavy sheet of n×n vertices, as igl::read_triangle_mesh gives it.
void sheet(int n, Eigen::MatrixXd &V, Eigen::MatrixXi &F) {
  V.resize(n * n, 3);
  F.resize(2 * (n - 1) * (n - 1), 3);
  for (int i = 0, f = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      V.row(i * n + j) << i + 0.2 * std::sin(3.0 * j), j, std::sin(0.4 * i) * std::cos(0.3 * j);
      if (i + 1 == n || j + 1 == n) continue;
      const int a = i * n + j;
      F.row(f++) << a, a + n, a + n + 1;
      F.row(f++) << a, a + n + 1, a + 1;
    }
  }
}

}  // namespace

int main() {
  try {
    Eigen::MatrixXd V;
    Eigen::MatrixXi F;
    sheet(200, V, F);
    const eman::context context;
    const std::vector<double> powers{0.5, 0.7};
    Eigen::MatrixXd features(V.rows(), 4);                       // column-major
    Eigen::VectorXi labels(V.rows());                            // a column
    Eigen::Matrix<double, Eigen::Dynamic, 8> wide(V.rows(), 8);  // results between other columns
    wide.setConstant(-7);
    const eman::model model(context, R"({"preset": "default", "classes": 4, "width": 8, "hidden": 8})", 1);

    // Column-major matrices straight in, and straight out.
    eman::mesh mesh(context, V, F);
    mesh.reltan(powers, features);
    mesh.reltan(powers, wide.middleCols(2, 4));
    model.predict(mesh, labels);
    if (wide.middleCols(2, 4) != features || (wide.leftCols(2).array() != -7).any() ||
        (wide.rightCols(2).array() != -7).any())
      throw std::runtime_error("a block of columns is not written as a matrix is");

    // The same mesh as packed rows, as a map of the caller's memory, as every
    // second row of a larger matrix, and reversed: the same features.
    const row_major rows = V;
    const Eigen::Map<const row_major> map(rows.data(), rows.rows(), 3);
    Eigen::MatrixXd spread = Eigen::MatrixXd::Constant(2 * V.rows(), 5, 1e9);
    const Eigen::Map<Eigen::MatrixXd, 0, Eigen::Stride<Eigen::Dynamic, 2>> second(
        spread.data() + spread.rows(), V.rows(), 3, Eigen::Stride<Eigen::Dynamic, 2>(spread.rows(), 2));
    for (Eigen::Index i = 0; i < V.rows(); i++) spread.block(2 * i, 1, 1, 3) = V.row(i);
    const Eigen::Matrix<std::int64_t, Eigen::Dynamic, 3, Eigen::RowMajor> wide_indices = F.cast<std::int64_t>();
    Eigen::MatrixXd again(V.rows(), 4);
    const auto same = [&](const char *what, const eman::input &positions, const eman::input &faces) {
      again.setZero();
      eman::mesh(context, positions, faces).reltan(powers, again);
      if (again != features) throw std::runtime_error(std::string(what) + ": other features");
    };

    largest = 0;
    same("column-major", V, F);
    same("row-major", rows, wide_indices);
    same("map", map, F);
    same("strided map", second, F);
    mesh.update(rows);
    mesh.reltan(powers, features);
    model.predict(mesh, labels);
    const std::size_t asked = largest, size = static_cast<std::size_t>(V.size()) * sizeof(double);
    const Eigen::MatrixXd copy = V;
    if (largest < size) throw std::runtime_error("a copy would not have been seen");
    std::cout << V.rows() << " vertices, V has " << size << " bytes, the largest piece allocated " << asked << "\n";
    return asked < size / 100 && copy == V ? 0 : 1;
  } catch (const std::exception &e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
