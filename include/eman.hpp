/// @file
/// eman.hpp: the C++17 interface of libeman, header-only over eman.h.
///
/// Copyright the libeman authors. Licensed under the Apache License 2.0.
///
///     eman::context context;
///     eman::mesh mesh(context, {positions, 3}, {faces, 3});     // std::vector<double>, std::vector<int>
///     std::vector<double> features = mesh.reltan({0.5, 0.7});   // V×4
///
/// CONVENTIONS, which hold wherever a function does not say otherwise
///
/// Objects     own their handles; they can be moved and not copied. A moved-from
///             object has no handle: using it is an error, not a crash.
/// Errors      are thrown as eman::error. Codes, and what eman.h says of a
///             function, hold for its C++ form too. On failure nothing is
///             written, and objects are as they were. What the standard library
///             throws passes: std::bad_alloc where a std::vector has no memory.
/// Arrays      are read through eman::input and written through eman::output,
///             which borrow for the call: vectors (`{v, 3}`: rows of 3), Eigen's
///             matrices, maps and blocks, or any strides (eman::matrix). Nothing
///             is copied on the way. Functions without an output return
///             std::vector, packed row after row.
/// Threads     const functions may be called on one object from many threads at
///             once, as all of them may on different objects; eman.h says more.
/// Callbacks   run on the calling thread. What they throw ends the call and is
///             thrown on from it; it does not pass through the library.
///
/// V is the number of vertices, F of faces, E of directed edges, P of relative powers.
#ifndef EMAN_HPP
#define EMAN_HPP

#include <algorithm>
#include <cstddef>
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

/// libeman in C++.
namespace eman {

/// A failed call: what() is the library's message, which names the culprit.
class error : public std::runtime_error {
 public:
  /// @param code     the status
  /// @param message  empty: the name of the status
  error(eman_status code, const std::string &message)
      : std::runtime_error(message.empty() ? eman_status_name(code) : message), code_(code) {}
  /// EMAN_E_INVALID_MESH and others.
  eman_status code() const noexcept { return code_; }

 private:
  eman_status code_;
};

/// What the classes below are made of; no part of the interface.
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

/// Whether a type is a dense array of Eigen's that lies in memory.
template <class T, class = void>
inline constexpr bool is_eigen = false;
template <class T>
inline constexpr bool
    is_eigen<T, std::void_t<decltype(std::declval<T &>().data(), std::declval<T &>().outerStride(), T::IsRowMajor)>> =
        true;

/// Whether a type has its elements, which Pointer can point to, in one piece.
template <class T, class Pointer, class = void>
inline constexpr bool is_container = false;
template <class T, class Pointer>
inline constexpr bool
    is_container<T, Pointer, std::void_t<decltype(std::declval<T &>().data(), std::declval<T &>().size())>> =
        std::is_convertible_v<decltype(std::declval<T &>().data()), Pointer> && !is_eigen<std::remove_cv_t<T>>;

template <class T>
using element = std::remove_pointer_t<decltype(std::declval<T &>().data())>;

template <class Handle, void (*Free)(Handle *)>
struct deleter {
  void operator()(Handle *handle) const noexcept { Free(handle); }
};

template <class Handle, void (*Free)(Handle *)>
using handle = std::unique_ptr<Handle, deleter<Handle, Free>>;

/// How many elements, as the C interface counts a short list. It refuses more
/// than it knows, so what does not fit may be cut to the largest number.
template <class List>
std::int32_t count(const List &list) noexcept {
  return static_cast<std::int32_t>(std::min<std::size_t>(list.size(), INT32_MAX));
}

/// A struct whose struct_size is set.
template <class Struct>
Struct sized() noexcept {
  Struct s{};
  s.struct_size = sizeof s;
  return s;
}

/// A text, or bytes, from a function of the C interface that says how long they
/// are: what a training says of itself may have grown until it is asked again.
template <class Bytes = std::string, class Function>
Bytes text(Function &&function) {
  Bytes result;
  std::int64_t length = 0;
  eman_status status;
  while ((status = function(result.data(), static_cast<std::int64_t>(result.size()), &length)) ==
         EMAN_E_BUFFER_TOO_SMALL)
    result.resize(static_cast<std::size_t>(length) + 1);
  check(status);
  result.resize(static_cast<std::size_t>(length));
  return result;
}

}  // namespace detail

// ------------------------------------------------------------------ the library

/// Facts about the library as a JSON object (eman_build_info).
inline std::string build_info() { return detail::text(eman_build_info); }

/// Returns unused memory to the system (eman_trim).
inline void trim() { detail::check(eman_trim()); }

// ------------------------------------------------------------------ arrays

/// A rectangular array of the caller's, a span in two dimensions: a pointer, a
/// shape and strides. T is const for arrays that are only read. It borrows.
template <class T>
class matrix {
 public:
  /// Element (i, j) lies i·row_stride + j·column_stride bytes behind data; strides
  /// may be negative, and 0 means packed, row after row.
  matrix(T *data, std::int64_t rows, std::int64_t columns, std::int64_t row_stride = 0,
         std::int64_t column_stride = 0) noexcept
      : data_(data), rows_(rows), columns_(columns), row_stride_(row_stride), column_stride_(column_stride) {}

  /// A packed array in anything with data() and size(), such as std::vector.
  /// Throws EMAN_E_INVALID_ARGUMENT if the size is no multiple of the columns.
  template <class Container, class = std::enable_if_t<detail::is_container<Container, T *>>>
  matrix(Container &container, std::int64_t columns = 1)
      : matrix(container.data(), columns > 0 ? static_cast<std::int64_t>(container.size()) / columns : 0, columns) {
    if (columns <= 0 || static_cast<std::int64_t>(container.size()) % columns != 0)
      throw error(EMAN_E_INVALID_ARGUMENT, "the number of elements is no multiple of the number of columns");
  }

  /// The element (0, 0).
  T *data() const noexcept { return data_; }
  /// The number of rows.
  std::int64_t rows() const noexcept { return rows_; }
  /// The number of columns.
  std::int64_t columns() const noexcept { return columns_; }

  /// As the C interface reads it.
  eman_view view() const noexcept {
    return {data_, rows_, columns_, row_stride_, column_stride_, detail::dtype_of<T>(), 0};
  }
  /// As the C interface writes it.
  eman_mutable_view mutable_view() const noexcept {
    static_assert(!std::is_const_v<T>, "this array cannot be written");
    return {data_, rows_, columns_, row_stride_, column_stride_, detail::dtype_of<T>(), 0};
  }

 private:
  T *data_;
  std::int64_t rows_, columns_, row_stride_, column_stride_;
};

/// The elements of an Eigen matrix, map or block, row- or column-major (libigl's
/// matrices are such), where they lie. inputs and outputs take these directly.
template <class Dense>
auto eigen(Dense &&dense) {
  using T = detail::element<std::remove_reference_t<Dense>>;
  const auto inner = static_cast<std::int64_t>(dense.innerStride()) * static_cast<std::int64_t>(sizeof(T));
  const auto outer = static_cast<std::int64_t>(dense.outerStride()) * static_cast<std::int64_t>(sizeof(T));
  constexpr bool row_major = std::decay_t<Dense>::IsRowMajor;
  return matrix<T>(dense.data(), dense.rows(), dense.cols(), row_major ? outer : inner, row_major ? inner : outer);
}

/// An array that a call reads, of any of the element types that the library
/// knows. It borrows.
class input {
 public:
  /// Any strides.
  template <class T>
  input(const matrix<T> &m) noexcept : view_(m.view()) {}
  /// A packed array with so many columns.
  template <class Container, class = std::enable_if_t<detail::is_container<const Container, const void *>>>
  input(const Container &container, std::int64_t columns = 1)
      : view_(matrix<detail::element<const Container>>(container, columns).view()) {}
  /// An Eigen matrix, map or block.
  template <class Dense, std::enable_if_t<detail::is_eigen<Dense>, int> = 0>
  input(const Dense &dense) noexcept : view_(eigen(dense).view()) {}

  /// As the C interface takes it, as long as this object and the array live.
  const eman_view *get() const noexcept { return &view_; }

 private:
  eman_view view_;
};

/// An array that a call writes: its columns must be those of the result, and its
/// rows at least so many. Real results are written as float or double, integers
/// as std::int32_t, std::uint32_t or std::int64_t. It borrows.
class output {
 public:
  /// Any strides.
  template <class T>
  output(const matrix<T> &m) noexcept : view_(m.mutable_view()) {}
  /// A packed array with so many columns.
  template <class Container, class = std::enable_if_t<detail::is_container<Container, void *>>>
  output(Container &container, std::int64_t columns = 1)
      : view_(matrix<detail::element<Container>>(container, columns).mutable_view()) {}
  /// An Eigen matrix, map or block.
  template <class Dense, std::enable_if_t<detail::is_eigen<std::decay_t<Dense>>, int> = 0>
  output(Dense &&dense) noexcept : view_(eigen(dense).mutable_view()) {}

  /// As the C interface takes it, as long as this object and the array live.
  const eman_mutable_view *get() const noexcept { return &view_; }

 private:
  eman_mutable_view view_;
};

namespace detail {

/// A packed result of the library's, rows×columns, which fill writes; it refuses
/// a negative size.
template <class T, class Function>
std::vector<T> filled(std::int64_t rows, std::int64_t columns, Function &&fill) {
  std::vector<T> result(rows > 0 ? static_cast<std::size_t>(rows * columns) : 0);
  fill(output(matrix<T>(result.data(), rows, columns)));
  return result;
}

}  // namespace detail

// ------------------------------------------------------------------ random numbers

/// n independent uniform angles in [−π, π), determined by the seed.
inline std::vector<double> random_angles(std::uint64_t seed, std::int64_t n) {
  return detail::filled<double>(n, 1, [=](const output &o) { detail::check(eman_random_angles(seed, o.get())); });
}

/// A uniform rotation matrix, nine numbers row by row, determined by the seed.
inline std::vector<double> random_rotation(std::uint64_t seed) {
  std::vector<double> r(9);
  detail::check(eman_random_rotation(seed, r.data()));
  return r;
}

/// A random order of 0 … n−1, determined by the seed.
inline std::vector<std::int64_t> random_permutation(std::uint64_t seed, std::int64_t n) {
  return detail::filled<std::int64_t>(n, 1,
                                      [=](const output &o) { detail::check(eman_random_permutation(seed, o.get())); });
}

// ------------------------------------------------------------------ calls that are watched

/// Watches a long call. A stopped call throws error with EMAN_E_CANCELLED.
struct control {
  std::function<bool(double)> progress;           ///< gets the fraction done; false stops the call
  const volatile std::int32_t *cancel = nullptr;  ///< polled; set to non-zero by another thread, it stops the call
};

namespace detail {

/// A function of the caller's as the C interface calls it: what it throws is kept
/// until the call has ended.
template <class Argument>
class callback {
 public:
  explicit callback(const std::function<bool(Argument)> &function) : function_(function) {}

  static std::int32_t call(void *self, Argument argument) noexcept {
    auto *c = static_cast<callback *>(self);
    try {
      return c->function_(argument) ? 0 : 1;
    } catch (...) {
      c->thrown_ = std::current_exception();
      return 1;
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const std::function<bool(Argument)> &function_;
  std::exception_ptr thrown_;
};

/// Makes a call with the C side of a control: NULL if there is nothing to watch.
template <class Function>
void watched(const control &watch, Function &&function) {
  callback<double> progress(watch.progress);
  eman_control c;
  check(eman_control_init(&c, sizeof c));
  c.cancel = watch.cancel;
  c.progress = watch.progress ? &callback<double>::call : nullptr;
  c.user = &progress;
  const eman_status status = function(watch.progress || watch.cancel != nullptr ? &c : nullptr);
  progress.rethrow();
  check(status);
}

/// The handle that a watched call creates.
template <class Handle, class Function>
Handle created(const control &watch, Function &&function) {
  Handle result;
  watched(watch, [&](const eman_control *c) {
    typename Handle::pointer raw = nullptr;
    const eman_status status = function(c, &raw);
    result.reset(raw);
    return status;
  });
  return result;
}

/// The handle that a call creates.
template <class Handle, class Function>
Handle created(Function &&function) {
  typename Handle::pointer raw = nullptr;
  check(function(&raw));
  return Handle(raw);
}

}  // namespace detail

// ------------------------------------------------------------------ context

/// Options of a context (eman_context_options), with the library's defaults. A
/// log function must not throw.
struct context_options : eman_context_options {
  context_options() { detail::check(eman_context_options_init(this, sizeof(eman_context_options))); }
};

/// The threads and memory of a group of objects, which may outlive it.
class context {
 public:
  /// Throws EMAN_E_UNSUPPORTED for an instruction set that there is not.
  explicit context(const context_options &options = {})
      : handle_(detail::created<handle_type>([&](auto **raw) { return eman_context_create(&options, raw); })) {}

  /// What it has and uses.
  eman_context_info describe() const {
    auto info = detail::sized<eman_context_info>();
    detail::check(eman_context_describe(get(), &info));
    return info;
  }

  /// The handle, for the C interface; it stays this object's.
  eman_context *get() const noexcept { return handle_.get(); }

 private:
  using handle_type = detail::handle<eman_context, eman_context_free>;
  handle_type handle_;
};

// ------------------------------------------------------------------ mesh

/// What the mesh doctor found in a mesh at the time of mesh::examine.
class report {
 public:
  /// The sizes and judgements.
  eman_report_summary summary() const {
    auto s = detail::sized<eman_report_summary>();
    detail::check(eman_report_summarize(get(), &s));
    return s;
  }

  /// How many elements a finding (EMAN_ISOLATED_VERTICES …) has.
  std::int64_t count(eman_finding finding) const { return shape(finding).first; }

  /// The elements of a finding: vertices or faces, or edges as pairs of vertices.
  std::vector<std::int64_t> indices(eman_finding finding) const {
    const auto [count, width] = shape(finding);
    return detail::filled<std::int64_t>(
        count, width, [this, f = finding](const output &o) { detail::check(eman_report_indices(get(), f, o.get())); });
  }

  /// The handle, for the C interface; it stays this object's.
  const eman_report *get() const noexcept { return handle_.get(); }

 private:
  friend class mesh;
  using handle_type = detail::handle<eman_report, eman_report_free>;
  explicit report(handle_type handle) noexcept : handle_(std::move(handle)) {}

  std::pair<std::int64_t, std::int32_t> shape(eman_finding finding) const {
    std::pair<std::int64_t, std::int32_t> s;
    detail::check(eman_report_count(get(), finding, &s.first, &s.second));
    return s;
  }

  handle_type handle_;
};

/// Options of a mesh (eman_mesh_options), with the library's defaults. frames is
/// input::get() of an input that lives until the mesh is made.
struct mesh_options : eman_mesh_options {
  mesh_options() { detail::check(eman_mesh_options_init(this, sizeof(eman_mesh_options))); }
};

/// Options of RelTan features (eman_reltan_options), with the library's defaults.
struct reltan_options : eman_reltan_options {
  reltan_options() { detail::check(eman_reltan_options_init(this, sizeof(eman_reltan_options))); }
};

/// Neighbours in compressed sparse rows: those of row p are indices[offsets[p]] …
/// indices[offsets[p+1]−1].
struct neighbor_lists {
  std::vector<std::int64_t> offsets;  ///< one more than rows
  std::vector<std::int32_t> indices;  ///< one for each directed edge

 private:
  friend class mesh;
  friend class model;
  template <class Function>
  neighbor_lists(std::int64_t rows, std::int64_t edges, Function &&fill)
      : offsets(static_cast<std::size_t>(rows) + 1), indices(static_cast<std::size_t>(edges)) {
    fill(output(offsets), output(indices));
  }
};

/// A triangle mesh with its neighbours and frames (§3). Units are the caller's.
class mesh {
 public:
  /// The size of a mesh.
  struct counts_type {
    std::int64_t vertices = 0;  ///< V
    std::int64_t faces = 0;     ///< F, without dropped ones
    std::int64_t edges = 0;     ///< E: each pair of neighbours counts twice
  };

  /// Builds a mesh from a copy of positions, V×3 reals, and faces, F×3 indices.
  /// Throws EMAN_E_INVALID_MESH naming the face or vertex.
  mesh(const context &c, const input &positions, const input &faces, const mesh_options &options = {},
       const control &watch = {})
      : handle_(detail::created<handle_type>(watch, [&](const eman_control *w, auto **raw) {
          return eman_mesh_create(c.get(), positions.get(), faces.get(), &options, w, raw);
        })) {}

  /// Moves the vertices to positions, V×3, and keeps the faces. Other threads'
  /// calls that are running finish with the old positions. Queries of edges ask
  /// for their number first: where vertices begin or cease to coincide, do not
  /// call them meanwhile.
  void update(const input &positions, const control &watch = {}) { move_to(positions, nullptr, watch); }
  /// The same for a mesh with the custom gauge; frames are V×9, rows e1, e2, n.
  void update(const input &positions, const input &frames, const control &watch = {}) {
    move_to(positions, frames.get(), watch);
  }

  /// The size.
  counts_type counts() const {
    counts_type c;
    detail::check(eman_mesh_counts(get(), &c.vertices, &c.faces, &c.edges));
    return c;
  }

  /// V×3.
  std::vector<double> positions() const { return of_vertices<double>(eman_mesh_positions, 3); }
  /// F×3 vertex indices of the faces that were kept.
  std::vector<std::int32_t> faces() const { return rows<std::int32_t>(eman_mesh_faces, counts().faces, 3); }
  /// V×3 unit normals (§3.2).
  std::vector<double> vertex_normals() const { return of_vertices<double>(eman_mesh_vertex_normals, 3); }
  /// V×9: rows e1, e2, n of the frame of each vertex.
  std::vector<double> frames() const { return of_vertices<double>(eman_mesh_frames, 9); }
  /// V×3: ⟨p, n⟩, ⟨p, e1⟩, ⟨p, e2⟩ (app. G).
  std::vector<double> get_features() const { return of_vertices<double>(eman_mesh_get_features, 3); }
  /// The polar angle of the neighbour in the gauge of the vertex, for each
  /// directed edge; radians in (−π, π].
  std::vector<double> edge_angles() const { return of_edges<double>(eman_mesh_edge_angles); }
  /// The angle of the parallel transport from the neighbour to the vertex, for
  /// each directed edge; radians in (−π, π].
  std::vector<double> transport_angles() const { return of_edges<double>(eman_mesh_transport_angles); }
  /// The number of the reverse of each directed edge.
  std::vector<std::int32_t> reverse_edges() const { return of_edges<std::int32_t>(eman_mesh_reverse_edges); }
  /// The neighbours of each vertex, in increasing order.
  neighbor_lists neighbors() const {
    const counts_type c = counts();
    return {c.vertices, c.edges, [this](const output &offsets, const output &indices) {
              detail::check(eman_mesh_neighbors(get(), offsets.get(), indices.get()));
            }};
  }
  /// The number of each vertex's connected component, and how many there are.
  std::pair<std::vector<std::int32_t>, std::int64_t> components() const {
    std::pair<std::vector<std::int32_t>, std::int64_t> result;
    result.first = detail::filled<std::int32_t>(counts().vertices, 1, [&](const output &o) {
      detail::check(eman_mesh_components(get(), o.get(), &result.second));
    });
    return result;
  }

  /// RelTan features (§4) of P powers: V×2P, or V×3P in ambient space. Throws
  /// EMAN_E_INVALID_MESH naming the vertex if a vector overflows.
  std::vector<double> reltan(const std::vector<double> &powers, const reltan_options &options = {},
                             const control &watch = {}) const {
    const auto columns = static_cast<std::int64_t>(powers.size()) * (options.space == EMAN_SPACE_AMBIENT ? 3 : 2);
    return detail::filled<double>(counts().vertices, columns,
                                  [&](const output &o) { reltan(powers, o, options, watch); });
  }
  /// The same into an array of the caller's, of which rows may have been written
  /// when it throws.
  void reltan(const std::vector<double> &powers, const output &features, const reltan_options &options = {},
              const control &watch = {}) const {
    detail::watched(watch, [&](const eman_control *w) {
      return eman_mesh_reltan(get(), powers.data(), detail::count(powers), &options, w, features.get());
    });
  }

  /// The mesh doctor.
  report examine(const control &watch = {}) const {
    return report(detail::created<report::handle_type>(
        watch, [&](const eman_control *w, auto **raw) { return eman_mesh_examine(get(), w, raw); }));
  }

  /// A copy with each frame turned about its normal by angles, V×1, radians.
  mesh change_gauge(const input &angles, const control &watch = {}) const {
    return copy(watch,
                [&](const eman_control *w, auto **raw) { return eman_mesh_change_gauge(get(), angles.get(), w, raw); });
  }
  /// A copy moved by x ↦ scale·R·x + translation; R has nine numbers, row by row.
  mesh transform(const std::vector<double> &rotation, const std::vector<double> &translation, double scale,
                 const control &watch = {}) const {
    if (rotation.size() != 9 || translation.size() != 3)
      throw error(EMAN_E_INVALID_ARGUMENT, "a rotation has nine numbers and a translation three");
    return copy(watch, [&](const eman_control *w, auto **raw) {
      return eman_mesh_transform(get(), rotation.data(), translation.data(), scale, w, raw);
    });
  }
  /// A renumbered copy: vertex i is vertex_order[i] of this one.
  mesh permute(const input &vertex_order, const control &watch = {}) const {
    return copy(watch, [&](const eman_control *w, auto **raw) {
      return eman_mesh_permute(get(), vertex_order.get(), nullptr, nullptr, w, raw);
    });
  }
  /// The same with the faces in another order, each beginning at another corner:
  /// 0, 1 or 2.
  mesh permute(const input &vertex_order, const input &face_order, const input &corner_shift,
               const control &watch = {}) const {
    return copy(watch, [&](const eman_control *w, auto **raw) {
      return eman_mesh_permute(get(), vertex_order.get(), face_order.get(), corner_shift.get(), w, raw);
    });
  }

  /// The handle, for the C interface; it stays this object's.
  eman_mesh *get() const noexcept { return handle_.get(); }

 private:
  using handle_type = detail::handle<eman_mesh, eman_mesh_free>;
  using query = eman_status (*)(const eman_mesh *, const eman_mutable_view *);

  explicit mesh(handle_type handle) noexcept : handle_(std::move(handle)) {}

  template <class Function>
  static mesh copy(const control &watch, Function &&function) {
    return mesh(detail::created<handle_type>(watch, function));
  }
  void move_to(const input &positions, const eman_view *frames, const control &watch) {
    detail::watched(watch, [&](const eman_control *w) { return eman_mesh_update(get(), positions.get(), frames, w); });
  }
  template <class T>
  std::vector<T> rows(query function, std::int64_t count, std::int64_t columns) const {
    return detail::filled<T>(count, columns, [&](const output &o) { detail::check(function(get(), o.get())); });
  }
  template <class T>
  std::vector<T> of_vertices(query function, std::int64_t columns) const {
    return rows<T>(function, counts().vertices, columns);
  }
  template <class T>
  std::vector<T> of_edges(query function) const {
    return rows<T>(function, counts().edges, 1);
  }

  handle_type handle_;
};

// ------------------------------------------------------------------ models

/// A tensor of a network's, with values in C order.
struct tensor {
  std::string name;                 ///< such as "blocks.0.weight"
  std::vector<std::int64_t> shape;  ///< at most 8 sizes
  std::vector<float> values;        ///< as many as the product of the shape
};

namespace detail {

/// Whether a tensor has as many values as its shape says, whose product may be
/// beyond any number.
inline bool is_whole(const tensor &t) {
  auto left = static_cast<std::int64_t>(t.values.size());
  for (const std::int64_t n : t.shape) {
    if (n <= 0 || left % n != 0) return n == 0 && left == 0;
    left /= n;
  }
  return left == 1;
}

/// Tensors as the C interface reads them; they borrow.
inline std::vector<eman_tensor> views(const std::vector<tensor> &tensors) {
  std::vector<eman_tensor> result;
  result.reserve(tensors.size());
  for (const tensor &t : tensors) {
    if (!is_whole(t)) throw error(EMAN_E_INVALID_ARGUMENT, "tensor " + t.name + " has not as many values as its shape");
    result.push_back({t.name.c_str(), t.values.data(), t.shape.data(), count(t.shape), EMAN_FLOAT32});
  }
  return result;
}

}  // namespace detail

/// A network with its parameters (§5, §6). One object may serve any number of
/// threads at once. Functions that run it on a mesh throw EMAN_E_INVALID_MESH if
/// a feature is too large for float or a surface has neither face nor normal.
class model {
 public:
  /// A network with random parameters; description is JSON (eman_model_create),
  /// such as {"preset": "surface", "classes": 16} for anybody's mesh. Throws
  /// EMAN_E_INVALID_MODEL naming the field.
  model(const context &c, const std::string &description, std::uint64_t seed = 0)
      : model(detail::created<handle_type>(
            [&](auto **raw) { return eman_model_create(c.get(), description.c_str(), seed, raw); })) {}

  /// Reads a model file. Throws EMAN_E_IO, or EMAN_E_INVALID_MODEL naming the
  /// tensor or field.
  static model load(const context &c, const std::string &path) {
    return model(detail::created<handle_type>([&](auto **raw) { return eman_model_load(c.get(), path.c_str(), raw); }));
  }
  /// Reads the content of a model file, size bytes at data.
  static model load_memory(const context &c, const void *data, std::size_t size) {
    return model(detail::created<handle_type>(
        [&](auto **raw) { return eman_model_load_memory(c.get(), data, static_cast<std::int64_t>(size), raw); }));
  }
  /// Converts a state_dict of the authors' published code; config is JSON
  /// (eman_model_from_authors).
  static model from_authors(const context &c, const std::string &config, const std::vector<tensor> &tensors) {
    const auto t = detail::views(tensors);
    return model(detail::created<handle_type>(
        [&](auto **raw) { return eman_model_from_authors(c.get(), config.c_str(), t.data(), detail::count(t), raw); }));
  }

  /// Writes a model file; at every moment it is the old or the new one. Throws
  /// EMAN_E_IO.
  void save(const std::string &path) const { detail::check(eman_model_save(get(), path.c_str())); }
  /// The content of a model file.
  std::vector<std::uint8_t> save_memory() const {
    return detail::text<std::vector<std::uint8_t>>([this](void *data, std::int64_t capacity, std::int64_t *size) {
      return eman_model_save_memory(get(), data, capacity, size);
    });
  }

  /// The complete description, JSON.
  std::string spec() const {
    return detail::text([this](char *text, std::int64_t capacity, std::int64_t *length) {
      return eman_model_spec(get(), text, capacity, length);
    });
  }
  /// How many classes it tells apart.
  std::int64_t classes() const noexcept { return classes_; }
  /// Whether it gives a label to a mesh (classification), and not to each vertex.
  bool classifies() const noexcept { return classifies_; }

  /// Copies of all parameters, in the order of the network.
  std::vector<tensor> parameters() const {
    std::int32_t count = 0;
    detail::check(eman_model_parameter_count(get(), &count));
    std::vector<tensor> result;
    for (std::int32_t i = 0; i < count; i++) {
      auto info = detail::sized<eman_parameter_info>();
      detail::check(eman_model_describe_parameter(get(), i, &info));
      result.push_back(
          {info.name, {info.shape, info.shape + info.rank}, detail::filled<float>(info.size, 1, [&](const output &o) {
             detail::check(eman_model_get_parameter(get(), i, o.get()));
           })});
    }
    return result;
  }
  /// Replaces the given parameters, all or none. Throws EMAN_E_INVALID_MODEL
  /// naming the tensor. Calls of other threads finish with the old ones.
  void set_parameters(const std::vector<tensor> &tensors) {
    const auto t = detail::views(tensors);
    detail::check(eman_model_set_parameters(get(), t.data(), detail::count(t)));
  }

  /// The layers in front of the dense ones.
  std::vector<eman_layer_info> layers() const {
    std::int32_t count = 0;
    detail::check(eman_model_layer_count(get(), &count));
    std::vector<eman_layer_info> result;
    for (std::int32_t i = 0; i < count; i++) result.push_back(layer(i));
    return result;
  }

  /// About how many bytes a prediction on a mesh of this size takes.
  std::int64_t estimate(const mesh::counts_type &counts) const {
    std::int64_t bytes = 0;
    detail::check(eman_model_estimate(get(), counts.vertices, counts.edges, &bytes));
    return bytes;
  }

  /// About how much work a prediction on a mesh of this size is, not seen before.
  eman_work estimate_work(const mesh::counts_type &counts) const {
    auto work = detail::sized<eman_work>();
    detail::check(eman_model_estimate_work(get(), counts.vertices, counts.edges, &work));
    return work;
  }

  /// The label of each vertex, or of the mesh: the one element of the result for
  /// classification.
  std::vector<std::int32_t> predict(const mesh &m, const control &watch = {}) const {
    return detail::filled<std::int32_t>(results(m), 1, [&](const output &o) { predict(m, o, watch); });
  }
  /// The same into an array of the caller's, V×1 (1×1).
  void predict(const mesh &m, const output &labels, const control &watch = {}) const {
    detail::watched(watch, [&](const eman_control *w) { return eman_model_predict(get(), m.get(), w, labels.get()); });
  }
  /// The label of the mesh, for classification.
  std::int32_t classify(const mesh &m, const control &watch = {}) const {
    std::int32_t label = 0;
    predict(m, matrix<std::int32_t>(&label, 1, 1), watch);
    return label;
  }

  /// The most probable classes, the most probable first.
  struct top_type {
    std::vector<std::int32_t> labels;  ///< V×k (1×k for classification)
    std::vector<float> probabilities;  ///< V×k (1×k)
  };
  /// The k most probable classes, from 1 to classes().
  top_type top(const mesh &m, std::int32_t k, const control &watch = {}) const {
    top_type result;
    const std::int64_t rows = k > 0 && k <= classes() ? results(m) : 0;  // or the library refuses
    result.labels.resize(static_cast<std::size_t>(rows * k));
    result.probabilities.resize(result.labels.size());
    const output labels(matrix<std::int32_t>(result.labels.data(), rows, k));
    const output probabilities(matrix<float>(result.probabilities.data(), rows, k));
    detail::watched(watch, [&](const eman_control *w) {
      return eman_model_top(get(), m.get(), k, w, labels.get(), probabilities.get());
    });
    return result;
  }

  /// The log-probabilities of all classes, V×classes (1×classes).
  std::vector<float> logits(const mesh &m, const control &watch = {}) const {
    return detail::filled<float>(results(m), classes(), [&](const output &o) { logits(m, o, watch); });
  }
  /// The same into an array of the caller's; a packed one of float is written in
  /// place, without a copy of that size.
  void logits(const mesh &m, const output &out, const control &watch = {}) const {
    detail::watched(watch, [&](const eman_control *w) { return eman_model_logits(get(), m.get(), w, out.get()); });
  }

  /// How many rows a layer's features and attention have on a mesh.
  struct layer_size_type {
    std::int64_t rows = 0;   ///< of features
    std::int64_t edges = 0;  ///< of attention
  };
  /// The size of a layer, from 0, on a mesh.
  layer_size_type layer_size(const mesh &m, std::int32_t layer, const control &watch = {}) const {
    layer_size_type size;
    detail::watched(watch, [&](const eman_control *w) {
      return eman_model_layer_size(get(), m.get(), layer, w, &size.rows, &size.edges);
    });
    return size;
  }
  /// The neighbours that each row of a layer hears.
  neighbor_lists layer_neighbors(const mesh &m, std::int32_t layer, const control &watch = {}) const {
    const layer_size_type size = layer_size(m, layer, watch);
    return {size.rows, size.edges, [&](const output &offsets, const output &indices) {
              detail::watched(watch, [&](const eman_control *w) {
                return eman_model_layer_neighbors(get(), m.get(), layer, w, offsets.get(), indices.get());
              });
            }};
  }
  /// The attention of a layer that has heads, edges×heads in the order of
  /// layer_neighbors.
  std::vector<float> attention(const mesh &m, std::int32_t layer, const control &watch = {}) const {
    return detail::filled<float>(layer_size(m, layer, watch).edges, this->layer(layer).heads, [&](const output &o) {
      detail::watched(watch,
                      [&](const eman_control *w) { return eman_model_attention(get(), m.get(), layer, w, o.get()); });
    });
  }
  /// The features behind a layer, rows×(channels·(2·order+1)).
  std::vector<float> features(const mesh &m, std::int32_t layer, const control &watch = {}) const {
    const eman_layer_info info = this->layer(layer);
    const std::int64_t columns = static_cast<std::int64_t>(info.channels) * (2 * info.order + 1);
    return detail::filled<float>(layer_size(m, layer, watch).rows, columns, [&](const output &o) {
      detail::watched(watch,
                      [&](const eman_control *w) { return eman_model_features(get(), m.get(), layer, w, o.get()); });
    });
  }

  /// Where the samples of a surface lie that a network runs on.
  struct samples_type {
    std::vector<double> positions;  ///< K×3, in the coordinates of the mesh
    std::vector<double> normals;    ///< K×3, unit vectors
  };
  /// The samples of a mesh, for a network on a surface; others throw
  /// EMAN_E_INVALID_ARGUMENT.
  samples_type samples(const mesh &m, const control &watch = {}) const {
    samples_type result;
    result.positions.resize(3 * static_cast<std::size_t>(layer_size(m, 0, watch).rows));
    result.normals.resize(result.positions.size());
    const output positions(result.positions, 3), normals(result.normals, 3);
    detail::watched(watch, [&](const eman_control *w) {
      return eman_model_samples(get(), m.get(), w, positions.get(), normals.get());
    });
    return result;
  }

  /// How well it labels a mesh whose labels, V×1 (1×1), are known; −1 where they
  /// are not.
  eman_evaluation evaluate(const mesh &m, const input &labels, const control &watch = {}) const {
    return compare(m, labels, nullptr, watch);
  }
  /// The same with a table of std::int64_t, classes×classes: how many of class
  /// (row) were labelled as (column).
  eman_evaluation evaluate(const mesh &m, const input &labels, const output &confusion,
                           const control &watch = {}) const {
    return compare(m, labels, confusion.get(), watch);
  }

  /// The handle, for the C interface; it stays this object's.
  eman_model *get() const noexcept { return handle_.get(); }

 private:
  friend class trainer;
  using handle_type = detail::handle<eman_model, eman_model_free>;

  // The library writes its description without blanks, these fields first.
  explicit model(handle_type handle) : handle_(std::move(handle)) {
    const std::string text = spec(), field = "\"classes\":";
    classes_ = std::stoll(text.substr(text.find(field) + field.size()));
    classifies_ = text.find("\"task\":\"classification\"") != std::string::npos;
  }

  std::int64_t results(const mesh &m) const { return classifies() ? 1 : m.counts().vertices; }
  eman_layer_info layer(std::int32_t index) const {
    auto info = detail::sized<eman_layer_info>();
    detail::check(eman_model_describe_layer(get(), index, &info));
    return info;
  }
  eman_evaluation compare(const mesh &m, const input &labels, const eman_mutable_view *confusion,
                          const control &watch) const {
    auto result = detail::sized<eman_evaluation>();
    detail::watched(watch, [&](const eman_control *w) {
      return eman_model_evaluate(get(), m.get(), labels.get(), w, &result, confusion);
    });
    return result;
  }

  handle_type handle_;
  std::int64_t classes_ = 0;
  bool classifies_ = false;
};

// ------------------------------------------------------------------ training

/// A training (§7): a network, what it learns from and how far it is. One call at
/// a time; adding, running and stepping are refused while it runs.
class trainer {
 public:
  /// Begins a training of a copy of a model; description is JSON
  /// (eman_trainer_create). Throws EMAN_E_INVALID_ARGUMENT naming the field.
  trainer(const context &c, const model &m, const std::string &description = "{}")
      : handle_(detail::created<handle_type>(
            [&](auto **raw) { return eman_trainer_create(c.get(), m.get(), description.c_str(), raw); })) {}

  /// Reads a training that save wrote; the same meshes must be added again.
  /// Throws EMAN_E_IO or EMAN_E_INVALID_MODEL.
  static trainer load(const context &c, const std::string &path) {
    return trainer(
        detail::created<handle_type>([&](auto **raw) { return eman_trainer_load(c.get(), path.c_str(), raw); }));
  }

  /// A mesh, as it is now, to learn from, with a label for each vertex, V×1, or
  /// one for the mesh; −1 where it is unknown. The name tells it in errors.
  void add(const mesh &m, const input &labels, const std::string &name = "") { add(m, labels, name, 0); }
  /// A mesh to validate with after every epoch.
  void add_validation(const mesh &m, const input &labels, const std::string &name = "") { add(m, labels, name, 1); }

  /// Trains until the end. step is called after every step and returns false to
  /// stop. Whatever ends the run, the training can go on from the last whole
  /// step. Throws EMAN_E_CANCELLED, EMAN_E_DIVERGED.
  void run(const std::function<bool(const eman_step_info &)> &step = {}, const control &watch = {}) {
    using callback = detail::callback<const eman_step_info *>;
    const std::function<bool(const eman_step_info *)> by_pointer = [&](const eman_step_info *s) { return step(*s); };
    callback steps(by_pointer);
    detail::watched(watch, [&](const eman_control *w) {
      const eman_status status = eman_trainer_run(get(), w, step ? &callback::call : nullptr, &steps);
      steps.rethrow();
      return status;
    });
  }

  /// Makes one step and, after the last of an epoch, validates.
  eman_step_info step(const control &watch = {}) {
    auto info = detail::sized<eman_step_info>();
    detail::watched(watch, [&](const eman_control *w) { return eman_trainer_step(get(), w, &info); });
    return info;
  }

  /// About how many bytes a step on a mesh of this size takes.
  std::int64_t estimate(const mesh::counts_type &counts) const {
    std::int64_t bytes = 0;
    detail::check(eman_trainer_estimate(get(), counts.vertices, counts.edges, &bytes));
    return bytes;
  }

  /// About how much work a step on a mesh of this size is.
  eman_work estimate_work(const mesh::counts_type &counts) const {
    auto work = detail::sized<eman_work>();
    detail::check(eman_trainer_estimate_work(get(), counts.vertices, counts.edges, &work));
    return work;
  }

  /// How far it is, JSON (eman_trainer_state).
  std::string state() const {
    return detail::text([this](char *text, std::int64_t capacity, std::int64_t *length) {
      return eman_trainer_state(get(), text, capacity, length);
    });
  }

  /// A copy of the network of the best validation, or as it is now without one.
  model best() const { return copy(1); }
  /// A copy of the network as it is now.
  model current() const { return copy(0); }

  /// Writes the state; at every moment the file is the old or the new one. Throws
  /// EMAN_E_IO.
  void save(const std::string &path) const { detail::check(eman_trainer_save(get(), path.c_str())); }

  /// The handle, for the C interface; it stays this object's.
  eman_trainer *get() const noexcept { return handle_.get(); }

 private:
  using handle_type = detail::handle<eman_trainer, eman_trainer_free>;
  explicit trainer(handle_type handle) noexcept : handle_(std::move(handle)) {}

  void add(const mesh &m, const input &labels, const std::string &name, std::int32_t validation) {
    detail::check(eman_trainer_add_mesh(get(), m.get(), labels.get(), name.c_str(), validation));
  }
  model copy(std::int32_t best) const {
    return model(detail::created<model::handle_type>([&](auto **raw) { return eman_trainer_model(get(), best, raw); }));
  }

  handle_type handle_;
};

}  // namespace eman

#endif
