// eman.hpp: the C++17 interface of libeman, header-only over eman.h.
//
// Copyright the libeman authors. Licensed under the Apache License 2.0.
//
//   eman::context context;
//   eman::mesh mesh(context, {positions, 3}, {faces, 3});  // std::vector<double>, std::vector<int>
//   std::vector<double> features = mesh.reltan({0.5, 0.7});  // V×4
//
// Objects own their handles, can be moved and not copied. Failures are thrown as
// eman::error; what eman.h says of each function holds here too.
#ifndef EMAN_HPP
#define EMAN_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "eman.h"

namespace eman {

/// A failed call: what() is the library's message, code() its status.
class error : public std::runtime_error {
 public:
  error(eman_status code, const std::string &message)
      : std::runtime_error(message.empty() ? eman_status_name(code) : message), code_(code) {}
  eman_status code() const noexcept { return code_; }

 private:
  eman_status code_;
};

namespace detail {

inline void check(eman_status status) {
  if (status != EMAN_OK) throw error(status, eman_last_error());
}

template <class T>
constexpr eman_dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return EMAN_FLOAT32;
  } else if constexpr (std::is_same_v<U, double>) {
    return EMAN_FLOAT64;
  } else {
    static_assert(std::is_integral_v<U> && (sizeof(U) == 4 || (sizeof(U) == 8 && std::is_signed_v<U>)),
                  "arrays hold float, double, or integers of 32 bits or signed 64 bits");
    if constexpr (sizeof(U) == 8) return EMAN_INT64;
    return std::is_signed_v<U> ? EMAN_INT32 : EMAN_UINT32;
  }
}

template <class Handle, void (*Free)(Handle *)>
struct deleter {
  void operator()(Handle *handle) const noexcept { Free(handle); }
};

template <class Handle, void (*Free)(Handle *)>
using handle = std::unique_ptr<Handle, deleter<Handle, Free>>;

}  // namespace detail

/// A rectangular array of the caller's: a pointer, a shape and strides in bytes
/// (0: packed, row after row). T is const for arrays that are read. It borrows.
template <class T>
class matrix {
 public:
  matrix(T *data, std::int64_t rows, std::int64_t columns, std::int64_t row_stride = 0, std::int64_t column_stride = 0)
      : data_(data), rows_(rows), columns_(columns), row_stride_(row_stride), column_stride_(column_stride) {}

  /// A packed array in anything with data() and size(), such as std::vector.
  template <class Container,
            class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<Container &>().data()), T *>>>
  matrix(Container &container, std::int64_t columns = 1)
      : matrix(container.data(), columns > 0 ? static_cast<std::int64_t>(container.size()) / columns : 0, columns) {
    if (columns <= 0 || static_cast<std::int64_t>(container.size()) % columns != 0)
      throw error(EMAN_E_INVALID_ARGUMENT, "the number of elements is no multiple of the number of columns");
  }

  T *data() const noexcept { return data_; }
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }

  eman_view view() const noexcept {
    return {data_, rows_, columns_, row_stride_, column_stride_, detail::dtype_of<T>(), 0};
  }
  eman_mutable_view mutable_view() const noexcept {
    static_assert(!std::is_const_v<T>, "this array cannot be written");
    return {data_, rows_, columns_, row_stride_, column_stride_, detail::dtype_of<T>(), 0};
  }

 private:
  T *data_;
  std::int64_t rows_, columns_, row_stride_, column_stride_;
};

/// An Eigen matrix, map or block, row- or column-major, without a copy.
template <class Dense>
auto eigen(Dense &&dense) {
  using T = std::remove_pointer_t<decltype(dense.data())>;
  const auto inner = static_cast<std::int64_t>(dense.innerStride()) * static_cast<std::int64_t>(sizeof(T));
  const auto outer = static_cast<std::int64_t>(dense.outerStride()) * static_cast<std::int64_t>(sizeof(T));
  constexpr bool row_major = std::decay_t<Dense>::IsRowMajor;
  return matrix<T>(dense.data(), dense.rows(), dense.cols(), row_major ? outer : inner, row_major ? inner : outer);
}

/// A read-only array of positions (float or double) or indices, of any of the
/// element types that the library knows.
class input {
 public:
  template <class T>
  input(const matrix<T> &m) : view_(m.view()) {}
  template <class Container, class = decltype(std::declval<const Container &>().data())>
  input(const Container &container, std::int64_t columns = 1)
      : view_(matrix<const typename Container::value_type>(container, columns).view()) {}

  const eman_view *get() const noexcept { return &view_; }

 private:
  eman_view view_;
};

namespace detail {

/// A text from a function of the C interface, which first says how long it is.
template <class Function>
std::string text(Function &&function) {
  std::int64_t length = 0;
  const eman_status status = function(nullptr, 0, &length);
  if (status != EMAN_E_BUFFER_TOO_SMALL) check(status == EMAN_OK ? EMAN_E_INTERNAL : status);
  std::string result(static_cast<std::size_t>(length), '\0');
  check(function(result.data(), length + 1, &length));
  return result;
}

}  // namespace detail

/// Watches a long call. progress gets the fraction done and returns false to
/// stop; what it throws ends the call and is thrown on. *cancel may be set by
/// another thread. A stopped call throws error with EMAN_E_CANCELLED.
struct control {
  std::function<bool(double)> progress;
  const volatile std::int32_t *cancel = nullptr;
};

namespace detail {

/// The C side of a control, for the length of one call.
class watched_call {
 public:
  explicit watched_call(const control &c) : progress_(c.progress) {
    check(eman_control_init(&control_, sizeof control_));
    control_.cancel = c.cancel;
    if (progress_) {
      control_.progress = &trampoline;
      control_.user = this;
    }
  }
  watched_call(const watched_call &) = delete;
  watched_call &operator=(const watched_call &) = delete;

  const eman_control *get() const noexcept { return &control_; }
  void finish(eman_status status) const {
    if (thrown_) std::rethrow_exception(thrown_);
    check(status);
  }

 private:
  static std::int32_t trampoline(void *user, double fraction) noexcept {
    auto *self = static_cast<watched_call *>(user);
    try {
      return self->progress_(fraction) ? 0 : 1;
    } catch (...) {
      self->thrown_ = std::current_exception();
      return 1;
    }
  }

  std::function<bool(double)> progress_;
  eman_control control_;
  std::exception_ptr thrown_;
};

}  // namespace detail

/// Options of a context, with the library's defaults.
struct context_options : eman_context_options {
  context_options() { detail::check(eman_context_options_init(this, sizeof(eman_context_options))); }
};

/// Threads and memory for a group of objects.
class context {
 public:
  explicit context(const context_options &options = {}) {
    eman_context *raw = nullptr;
    detail::check(eman_context_create(&options, &raw));
    handle_.reset(raw);
  }

  eman_context_info describe() const {
    eman_context_info info{};
    info.struct_size = sizeof info;
    detail::check(eman_context_describe(get(), &info));
    return info;
  }

  eman_context *get() const noexcept { return handle_.get(); }

 private:
  detail::handle<eman_context, eman_context_free> handle_;
};

/// What the mesh doctor found.
class report {
 public:
  eman_report_summary summary() const {
    eman_report_summary s{};
    s.struct_size = sizeof s;
    detail::check(eman_report_summarize(get(), &s));
    return s;
  }

  /// How many elements a finding has.
  std::int64_t count(eman_finding finding) const { return shape(finding).first; }

  /// The elements of a finding: vertices or faces, or pairs of vertices.
  std::vector<std::int64_t> indices(eman_finding finding) const {
    const auto [count, width] = shape(finding);
    std::vector<std::int64_t> result(static_cast<std::size_t>(count * width));
    const auto out = matrix<std::int64_t>(result.data(), count, width).mutable_view();
    detail::check(eman_report_indices(get(), finding, &out));
    return result;
  }

  const eman_report *get() const noexcept { return handle_.get(); }

 private:
  friend class mesh;
  explicit report(eman_report *raw) : handle_(raw) {}

  std::pair<std::int64_t, std::int32_t> shape(eman_finding finding) const {
    std::pair<std::int64_t, std::int32_t> s;
    detail::check(eman_report_count(get(), finding, &s.first, &s.second));
    return s;
  }

  detail::handle<eman_report, eman_report_free> handle_;
};

/// Options of a mesh, with the library's defaults.
struct mesh_options : eman_mesh_options {
  mesh_options() { detail::check(eman_mesh_options_init(this, sizeof(eman_mesh_options))); }
};

/// Options of RelTan features, with the library's defaults.
struct reltan_options : eman_reltan_options {
  reltan_options() { detail::check(eman_reltan_options_init(this, sizeof(eman_reltan_options))); }
};

/// A triangle mesh with its neighbours and frames.
class mesh {
 public:
  struct counts_type {
    std::int64_t vertices = 0, faces = 0, edges = 0;
  };

  /// Positions V×3, faces F×3; both are copied.
  mesh(const context &c, const input &positions, const input &faces, const mesh_options &options = {},
       const control &watch = {}) {
    detail::watched_call call(watch);
    eman_mesh *raw = nullptr;
    const eman_status status = eman_mesh_create(c.get(), positions.get(), faces.get(), &options, call.get(), &raw);
    handle_.reset(raw);
    call.finish(status);
  }

  /// New positions on the same faces.
  void update(const input &positions) { detail::check(eman_mesh_update(get(), positions.get(), nullptr, nullptr)); }
  /// The same for a mesh with the custom gauge; frames V×9.
  void update(const input &positions, const input &frames) {
    detail::check(eman_mesh_update(get(), positions.get(), frames.get(), nullptr));
  }

  counts_type counts() const {
    counts_type c;
    detail::check(eman_mesh_counts(get(), &c.vertices, &c.faces, &c.edges));
    return c;
  }

  /// V×3 unit normals.
  std::vector<double> vertex_normals() const { return vertex_rows(eman_mesh_vertex_normals, 3); }
  /// V×9: rows e1, e2, n of each vertex.
  std::vector<double> frames() const { return vertex_rows(eman_mesh_frames, 9); }
  /// V×3: ⟨p, n⟩, ⟨p, e1⟩, ⟨p, e2⟩.
  std::vector<double> get_features() const { return vertex_rows(eman_mesh_get_features, 3); }
  /// θ of each directed edge, radians.
  std::vector<double> edge_angles() const { return edge_rows(eman_mesh_edge_angles); }
  /// The transport angle of each directed edge, radians.
  std::vector<double> transport_angles() const { return edge_rows(eman_mesh_transport_angles); }

  /// Offsets (V+1) and indices (E) of the neighbours.
  std::pair<std::vector<std::int64_t>, std::vector<std::int32_t>> neighbors() const {
    const counts_type c = counts();
    std::pair<std::vector<std::int64_t>, std::vector<std::int32_t>> result;
    result.first.resize(static_cast<std::size_t>(c.vertices) + 1);
    result.second.resize(static_cast<std::size_t>(c.edges));
    const auto offsets = matrix<std::int64_t>(result.first).mutable_view();
    const auto indices = matrix<std::int32_t>(result.second).mutable_view();
    detail::check(eman_mesh_neighbors(get(), &offsets, &indices));
    return result;
  }

  /// RelTan features: V×2P, or V×3P in ambient space.
  std::vector<double> reltan(const std::vector<double> &powers, const reltan_options &options = {},
                             const control &watch = {}) const {
    const auto columns = static_cast<std::int64_t>(powers.size()) * (options.space == EMAN_SPACE_AMBIENT ? 3 : 2);
    const std::int64_t vertices = counts().vertices;
    std::vector<double> result(static_cast<std::size_t>(vertices * columns));
    reltan(powers, matrix<double>(result.data(), vertices, columns), options, watch);
    return result;
  }
  /// The same into an array of the caller's, of float or double.
  template <class T>
  void reltan(const std::vector<double> &powers, const matrix<T> &features, const reltan_options &options = {},
              const control &watch = {}) const {
    detail::watched_call call(watch);
    const auto out = features.mutable_view();
    call.finish(
        eman_mesh_reltan(get(), powers.data(), static_cast<std::int32_t>(powers.size()), &options, call.get(), &out));
  }

  /// The mesh doctor.
  report examine(const control &watch = {}) const {
    detail::watched_call call(watch);
    eman_report *raw = nullptr;
    const eman_status status = eman_mesh_examine(get(), call.get(), &raw);
    report result(raw);
    call.finish(status);
    return result;
  }

  /// Copies for the tests of equivariance; see eman.h.
  mesh change_gauge(const std::vector<double> &angles) const {
    eman_mesh *raw = nullptr;
    detail::check(eman_mesh_change_gauge(get(), input(angles).get(), nullptr, &raw));
    return mesh(raw);
  }
  mesh transform(const std::vector<double> &rotation, const std::vector<double> &translation, double scale) const {
    if (rotation.size() != 9 || translation.size() != 3)
      throw error(EMAN_E_INVALID_ARGUMENT, "a rotation has nine numbers and a translation three");
    eman_mesh *raw = nullptr;
    detail::check(eman_mesh_transform(get(), rotation.data(), translation.data(), scale, nullptr, &raw));
    return mesh(raw);
  }
  mesh permute(const std::vector<std::int64_t> &vertex_order) const {
    eman_mesh *raw = nullptr;
    detail::check(eman_mesh_permute(get(), input(vertex_order).get(), nullptr, nullptr, nullptr, &raw));
    return mesh(raw);
  }

  eman_mesh *get() const noexcept { return handle_.get(); }

 private:
  explicit mesh(eman_mesh *raw) : handle_(raw) {}

  std::vector<double> rows(eman_status (*function)(const eman_mesh *, const eman_mutable_view *), std::int64_t count,
                           std::int64_t columns) const {
    std::vector<double> result(static_cast<std::size_t>(count * columns));
    const auto out = matrix<double>(result.data(), count, columns).mutable_view();
    detail::check(function(get(), &out));
    return result;
  }
  std::vector<double> vertex_rows(eman_status (*function)(const eman_mesh *, const eman_mutable_view *),
                                  std::int64_t columns) const {
    return rows(function, counts().vertices, columns);
  }
  std::vector<double> edge_rows(eman_status (*function)(const eman_mesh *, const eman_mutable_view *)) const {
    return rows(function, counts().edges, 1);
  }

  detail::handle<eman_mesh, eman_mesh_free> handle_;
};

/// A network with its parameters, to be shared by any number of threads.
class model {
 public:
  /// A network with random parameters; description is JSON (eman_model_create),
  /// such as {"preset": "surface", "classes": 16} for anybody's mesh.
  model(const context &c, const std::string &description, std::uint64_t seed = 0) {
    eman_model *raw = nullptr;
    detail::check(eman_model_create(c.get(), description.c_str(), seed, &raw));
    handle_.reset(raw);
  }

  /// Reads a model file.
  static model load(const context &c, const std::string &path) {
    eman_model *raw = nullptr;
    detail::check(eman_model_load(c.get(), path.c_str(), &raw));
    return model(raw);
  }

  /// Writes a model file; at every moment it is the old or the new one.
  void save(const std::string &path) const { detail::check(eman_model_save(get(), path.c_str())); }

  /// The complete description, JSON.
  std::string spec() const {
    return detail::text([this](char *text, std::int64_t capacity, std::int64_t *length) {
      return eman_model_spec(get(), text, capacity, length);
    });
  }

  /// About how many bytes a prediction on a mesh of this size takes.
  std::int64_t estimate(const mesh::counts_type &counts) const {
    std::int64_t bytes = 0;
    detail::check(eman_model_estimate(get(), counts.vertices, counts.edges, &bytes));
    return bytes;
  }

  /// The label of each vertex, or of the mesh: the one element of the result for
  /// classification.
  std::vector<std::int32_t> predict(const mesh &m, const control &watch = {}) const {
    if (spec().find("\"task\":\"classification\"") != std::string::npos) return {classify(m, watch)};
    std::vector<std::int32_t> labels(static_cast<std::size_t>(m.counts().vertices));
    predict(m, matrix<std::int32_t>(labels), watch);
    return labels;
  }
  /// The label of the mesh, for classification.
  std::int32_t classify(const mesh &m, const control &watch = {}) const {
    std::int32_t label = 0;
    predict(m, matrix<std::int32_t>(&label, 1, 1), watch);
    return label;
  }
  /// Labels into an array of the caller's.
  template <class T>
  void predict(const mesh &m, const matrix<T> &labels, const control &watch = {}) const {
    detail::watched_call call(watch);
    const auto out = labels.mutable_view();
    call.finish(eman_model_predict(get(), m.get(), call.get(), &out));
  }

  /// Log-probabilities into an array V×classes (1×classes for classification).
  template <class T>
  void logits(const mesh &m, const matrix<T> &out, const control &watch = {}) const {
    detail::watched_call call(watch);
    const auto view = out.mutable_view();
    call.finish(eman_model_logits(get(), m.get(), call.get(), &view));
  }

  /// The rows of a layer's features on a mesh, and of its attention.
  struct layer_size_type {
    std::int64_t rows = 0, edges = 0;
  };
  layer_size_type layer_size(const mesh &m, std::int32_t layer, const control &watch = {}) const {
    detail::watched_call call(watch);
    layer_size_type size;
    call.finish(eman_model_layer_size(get(), m.get(), layer, call.get(), &size.rows, &size.edges));
    return size;
  }

  /// Offsets (rows+1) and indices (edges) of the neighbours that a layer hears.
  std::pair<std::vector<std::int64_t>, std::vector<std::int32_t>> layer_neighbors(const mesh &m,
                                                                                  std::int32_t layer) const {
    const layer_size_type size = layer_size(m, layer);
    std::pair<std::vector<std::int64_t>, std::vector<std::int32_t>> result;
    result.first.resize(static_cast<std::size_t>(size.rows) + 1);
    result.second.resize(static_cast<std::size_t>(size.edges));
    const auto offsets = matrix<std::int64_t>(result.first).mutable_view();
    const auto indices = matrix<std::int32_t>(result.second).mutable_view();
    detail::check(eman_model_layer_neighbors(get(), m.get(), layer, nullptr, &offsets, &indices));
    return result;
  }

  /// Where the samples of a surface lie that the network runs on, and their unit
  /// normals: K×3 each, in the coordinates of the mesh.
  struct samples_type {
    std::vector<double> positions, normals;
  };
  samples_type samples(const mesh &m, const control &watch = {}) const {
    const std::int64_t count = layer_size(m, 0, watch).rows;
    samples_type result;
    result.positions.resize(static_cast<std::size_t>(3 * count));
    result.normals.resize(result.positions.size());
    const auto positions = matrix<double>(result.positions.data(), count, 3).mutable_view();
    const auto normals = matrix<double>(result.normals.data(), count, 3).mutable_view();
    detail::watched_call call(watch);
    call.finish(eman_model_samples(get(), m.get(), call.get(), &positions, &normals));
    return result;
  }

  /// How well it labels a mesh whose labels are known; -1 where they are not.
  eman_evaluation evaluate(const mesh &m, const input &labels, const control &watch = {}) const {
    detail::watched_call call(watch);
    eman_evaluation result{};
    result.struct_size = sizeof result;
    call.finish(eman_model_evaluate(get(), m.get(), labels.get(), call.get(), &result, nullptr));
    return result;
  }

  eman_model *get() const noexcept { return handle_.get(); }

 private:
  friend class trainer;
  explicit model(eman_model *raw) : handle_(raw) {}

  detail::handle<eman_model, eman_model_free> handle_;
};

/// A uniform rotation matrix, row by row, determined by the seed.
inline std::vector<double> random_rotation(std::uint64_t seed) {
  std::vector<double> r(9);
  detail::check(eman_random_rotation(seed, r.data()));
  return r;
}

/// A training: see eman_trainer. One thread at a time.
class trainer {
 public:
  /// Trains a copy of a model; description is JSON (eman_trainer_create).
  trainer(const context &c, const model &m, const std::string &description = "{}") {
    eman_trainer *raw = nullptr;
    detail::check(eman_trainer_create(c.get(), m.get(), description.c_str(), &raw));
    handle_.reset(raw);
  }

  /// Reads a training that save wrote; the same meshes must be added again.
  static trainer load(const context &c, const std::string &path) {
    eman_trainer *raw = nullptr;
    detail::check(eman_trainer_load(c.get(), path.c_str(), &raw));
    return trainer(raw);
  }

  /// A mesh to learn from, with a label for each vertex, or one for the mesh;
  /// -1 where it is unknown. The name tells it in errors.
  void add(const mesh &m, const input &labels, const std::string &name = "") {
    detail::check(eman_trainer_add_mesh(get(), m.get(), labels.get(), name.c_str(), 0));
  }
  /// A mesh to validate with after every epoch.
  void add_validation(const mesh &m, const input &labels, const std::string &name = "") {
    detail::check(eman_trainer_add_mesh(get(), m.get(), labels.get(), name.c_str(), 1));
  }

  /// Trains until the end. step is called after every step and returns false to
  /// stop; what it throws ends the run and is thrown on. The training can then
  /// go on.
  void run(const std::function<bool(const eman_step_info &)> &step = {}, const control &watch = {}) {
    detail::watched_call call(watch);
    steps s{step, {}};
    const eman_status status = eman_trainer_run(get(), call.get(), step ? &steps::trampoline : nullptr, &s);
    if (s.thrown) std::rethrow_exception(s.thrown);
    call.finish(status);
  }

  /// One step.
  eman_step_info step(const control &watch = {}) {
    detail::watched_call call(watch);
    eman_step_info info{};
    info.struct_size = sizeof info;
    call.finish(eman_trainer_step(get(), call.get(), &info));
    return info;
  }

  /// About how many bytes a step on a mesh of this size takes.
  std::int64_t estimate(const mesh::counts_type &counts) const {
    std::int64_t bytes = 0;
    detail::check(eman_trainer_estimate(get(), counts.vertices, counts.edges, &bytes));
    return bytes;
  }

  /// How far it is, JSON (eman_trainer_state).
  std::string state() const {
    return detail::text([this](char *text, std::int64_t capacity, std::int64_t *length) {
      return eman_trainer_state(get(), text, capacity, length);
    });
  }

  /// The network of the best validation, or as it is now without one.
  model best() const { return copy(1); }
  /// The network as it is now.
  model current() const { return copy(0); }

  /// Writes the state; at every moment the file is the old or the new one.
  void save(const std::string &path) const { detail::check(eman_trainer_save(get(), path.c_str())); }

  eman_trainer *get() const noexcept { return handle_.get(); }

 private:
  explicit trainer(eman_trainer *raw) : handle_(raw) {}

  struct steps {
    const std::function<bool(const eman_step_info &)> &function;
    std::exception_ptr thrown;

    static std::int32_t trampoline(void *user, const eman_step_info *info) noexcept {
      auto *self = static_cast<steps *>(user);
      try {
        return self->function(*info) ? 0 : 1;
      } catch (...) {
        self->thrown = std::current_exception();
        return 1;
      }
    }
  };

  model copy(std::int32_t best) const {
    eman_model *raw = nullptr;
    detail::check(eman_trainer_model(get(), best, &raw));
    return model(raw);
  }

  detail::handle<eman_trainer, eman_trainer_free> handle_;
};

}  // namespace eman

#endif
