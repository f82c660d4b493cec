// What eman.hpp offers beyond the examples: queries, round trips, errors, moved
// objects, callbacks. The exit status is 1 if a check failed.
#include <eman.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <numeric>

namespace {

int failures = 0;

void require(const char *what, bool condition) {
  if (condition) return;
  std::cout << what << "\n";
  failures++;
}

// A call that must be refused, and with which code and culprit.
template <class Function>
void refused(const char *what, eman_status code, const std::string &culprit, Function &&function) {
  try {
    function();
    std::cout << what << " is not refused\n";
  } catch (const eman::error &e) {
    if (e.code() == code && std::string(e.what()).find(culprit) != std::string::npos) return;
    std::cout << what << ": " << eman_status_name(e.code()) << ", \"" << e.what() << "\"\n";
  }
  failures++;
}

// An octahedron that is no regular one, and a triangle beside it.
const std::array<double, 27> positions{1,   0, 0, 0,  1.2, 0, -0.9, 0,   0, 0, -1.1, 0, 0, 0,
                                       0.8, 0, 0, -1, 5,   0, 0,    5.5, 1, 0, 5,    0, 1};
const std::vector<std::int32_t> faces{0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4, 1, 0, 5, 2, 1, 5, 3, 2, 5, 0, 3, 5, 6, 7, 8};

void meshes(const eman::context &context) {
  eman::mesh mesh(context, {positions, 3}, {faces, 3});
  const auto counts = mesh.counts();
  require("counts", counts.vertices == 9 && counts.faces == 9 && counts.edges == 30);
  require("positions", mesh.positions() == std::vector<double>(positions.begin(), positions.end()));
  require("faces", mesh.faces() == faces);
  const auto [components, count] = mesh.components();
  require("components", count == 2 && components == std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 1});
  const eman::neighbor_lists neighbors = mesh.neighbors();
  const auto reverse = mesh.reverse_edges();
  bool paired = neighbors.offsets.back() == counts.edges;
  for (std::size_t p = 0; p < 9; p++)
    for (auto e = static_cast<std::size_t>(neighbors.offsets[p]);
         e < static_cast<std::size_t>(neighbors.offsets[p + 1]); e++)
      paired &= neighbors.indices[static_cast<std::size_t>(reverse[e])] == static_cast<std::int32_t>(p);
  require("an edge's reverse leads back", paired);
  require("sizes", mesh.frames().size() == 81 && mesh.vertex_normals().size() == 27 &&
                       mesh.get_features().size() == 27 && mesh.edge_angles().size() == 30 &&
                       mesh.transport_angles().size() == 30);
  require("boundary", mesh.examine().indices(EMAN_BOUNDARY_EDGES) == std::vector<std::int64_t>{6, 7, 6, 8, 7, 8});

  // Vertices backwards, faces likewise, each from its second corner.
  std::vector<std::int64_t> backwards(9), shift(9, 1);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  require("permuted twice", mesh.permute(backwards).permute(backwards).faces() == faces);
  const auto shifted = mesh.permute(backwards, backwards, shift).faces();
  require("permuted faces", shifted[0] == 8 - 7 && shifted[1] == 8 - 8 && shifted[2] == 8 - 6);

  // Frames turned by a quarter: the second axis is the first, with its sign.
  const std::vector<double> frames = mesh.frames();
  const std::vector<double> turned = mesh.change_gauge(std::vector<double>(9, std::acos(0.0))).frames();
  require("turned", std::abs(turned[0] - frames[3]) + std::abs(turned[1] - frames[4]) < 1e-15);
  eman::mesh_options custom;
  custom.gauge = EMAN_GAUGE_CUSTOM;
  const eman::input given(turned, 9);
  custom.frames = given.get();
  eman::mesh framed(context, {positions, 3}, {faces, 3}, custom);
  framed.update({positions, 3}, {frames, 9});
  const std::vector<double> kept = framed.frames();
  require("frames of the caller", std::equal(kept.begin(), kept.end(), frames.begin(), frames.end(),
                                             [](double a, double b) { return std::abs(a - b) < 1e-15; }));
  eman::reltan_options ambient;
  ambient.space = EMAN_SPACE_AMBIENT;
  require("ambient", mesh.reltan({0.5, 0.7}, ambient).size() == 54);

  eman::mesh moved = std::move(framed);
  require("moved", moved.counts().vertices == 9);
  refused("a moved-from mesh", EMAN_E_INVALID_ARGUMENT, "mesh is NULL", [&] { framed.counts(); });
  refused("ragged rows", EMAN_E_INVALID_ARGUMENT, "columns", [&] { mesh.update({positions, 2}); });
  refused("a rotation of three", EMAN_E_INVALID_ARGUMENT, "rotation", [&] { mesh.transform({1, 0, 0}, {0, 0, 0}, 1); });
  refused("too small an array", EMAN_E_BUFFER_TOO_SMALL, "features", [&] {
    std::vector<double> small(16);
    mesh.reltan({0.5}, {small, 2});
  });
  const std::int32_t stop = 1;
  eman::control cancelled;
  cancelled.cancel = &stop;
  refused("a cancelled update", EMAN_E_CANCELLED, "", [&] { mesh.update({positions, 3}, cancelled); });
}

void models(const eman::context &context) {
  const eman::mesh mesh(context, {positions, 3}, {faces, 3});
  const eman::model model(context, R"({"preset": "authors", "classes": 3, "width": 4, "hidden": 8, "heads": 2})", 5);
  require("classes", model.classes() == 3 && !model.classifies());

  const std::vector<float> logits = model.logits(mesh);
  const auto bytes = model.save_memory();
  const eman::model read = eman::model::load_memory(context, bytes.data(), bytes.size());
  require("round trip in memory", read.logits(mesh) == logits && read.spec() == model.spec());
  eman::model other(context, model.spec(), 6);
  require("another seed", other.logits(mesh) != logits);
  other.set_parameters(model.parameters());
  require("parameters set", other.logits(mesh) == logits);

  const auto top = model.top(mesh, 2);
  const std::vector<std::int32_t> labels = model.predict(mesh);
  bool agree = top.labels.size() == 18 && labels.size() == 9;
  for (std::size_t p = 0; p < labels.size(); p++)
    agree &= top.labels[2 * p] == labels[p] && top.probabilities[2 * p] >= top.probabilities[2 * p + 1] &&
             std::abs(top.probabilities[2 * p] - std::exp(logits[3 * p + static_cast<std::size_t>(labels[p])])) < 1e-6F;
  require("top, labels and logits agree", agree);
  std::vector<std::int64_t> confusion(9);
  const eman_evaluation e = model.evaluate(mesh, labels, {confusion, 3});
  require("evaluation", e.correct == 9 && confusion[0] + confusion[4] + confusion[8] == 9 &&
                            model.evaluate(mesh, labels).correct == 9);

  const auto layers = model.layers();
  for (std::size_t i = 0; i < layers.size(); i++) {
    const auto l = static_cast<std::int32_t>(i);
    const auto columns = static_cast<std::size_t>(layers[i].channels * (2 * layers[i].order + 1));
    require(layers[i].name, model.features(mesh, l).size() == 9 * columns);
    if (layers[i].heads == 0) continue;
    const auto attention = model.attention(mesh, l);
    const double sum = std::accumulate(attention.begin(), attention.end(), 0.0);
    require("attention adds up to neighbours", std::abs(sum - 30.0 * layers[i].heads) < 1e-4);
  }
  const eman::neighbor_lists heard = model.layer_neighbors(mesh, 0);
  require("a layer hears the mesh's neighbours", heard.indices == mesh.neighbors().indices);

  const eman::model whole(context, R"({"preset": "default", "task": "classification", "classes": 5, "width": 4})");
  require("classification", whole.classifies() && whole.logits(mesh).size() == 5 &&
                                whole.predict(mesh) == std::vector<std::int32_t>{whole.classify(mesh)});

  refused("a field", EMAN_E_INVALID_MODEL, "classses", [&] { eman::model(context, R"({"classses": 3})"); });
  refused("no authors' network", EMAN_E_INVALID_MODEL, "lin1.weight",
          [&] { eman::model::from_authors(context, R"({"model": "EMAN"})", {{"odd", {2}, {1, 2}}}); });
  refused("values that are no shape", EMAN_E_INVALID_ARGUMENT, "tensor odd",
          [&] { other.set_parameters({{"odd", {2, 3}, {1, 2}}}); });
  refused("a shape beyond any number", EMAN_E_INVALID_ARGUMENT, "has not as many values",
          [&] { other.set_parameters({{"odd", {std::int64_t{1} << 32, std::int64_t{1} << 32}, {}}}); });
  refused("samples of vertices", EMAN_E_INVALID_ARGUMENT, "surface", [&] { model.samples(mesh); });
  refused("a file that is not there", EMAN_E_IO, "/nowhere/x", [&] { eman::model::load(context, "/nowhere/x"); });
  refused("no classes asked for", EMAN_E_INVALID_ARGUMENT, "k is", [&] { model.top(mesh, 0); });
  refused("more classes than there are", EMAN_E_INVALID_ARGUMENT, "k is", [&] { model.top(mesh, INT32_MAX); });

  eman::trainer trainer(context, model, R"({"epochs": 2})");
  trainer.add(mesh, labels);
  trainer.add_validation(mesh, labels, "again");
  require("a step", trainer.step().step == 1);
  refused("a mesh after the first step", EMAN_E_INVALID_ARGUMENT, "", [&] { trainer.add(mesh, labels); });
  refused("stopped", EMAN_E_CANCELLED, "", [&] { trainer.run([](const eman_step_info &) { return false; }); });
  require("its end", trainer.state().find("\"done\":true") != std::string::npos);
}

}  // namespace

int main() {
  const eman::context context;
  meshes(context);
  models(context);
  require("context", context.describe().threads > 0 && context.describe().memory_peak > 0);
  require("build info", eman::build_info().find("\"abi_version\"") != std::string::npos);
  const auto angles = eman::random_angles(1, 100);
  require("angles", angles == eman::random_angles(1, 100) && angles != eman::random_angles(2, 100));
  refused("fewer angles than none", EMAN_E_INVALID_ARGUMENT, "rows is -1", [] { eman::random_angles(1, -1); });
  auto order = eman::random_permutation(1, 4);
  require("order", order.size() == 4 && order[0] + order[1] + order[2] + order[3] == 6);
  const auto r = eman::random_rotation(4);
  require("rotation", std::abs(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] - 1) < 1e-12);
  eman::trim();
  // A text that is longer each time that it is asked for, and in the end shorter.
  std::int64_t asked = 0;
  const std::string grown = eman::detail::text([&](char *text, std::int64_t capacity, std::int64_t *length) {
    *length = ++asked < 4 ? 10 * asked : 5;
    if (capacity <= *length) return EMAN_E_BUFFER_TOO_SMALL;
    std::fill_n(text, *length, 'x');
    text[*length] = 0;
    return EMAN_OK;
  });
  require("a text that grows", grown == "xxxxx" && asked == 4);
  std::cout << failures << " failures\n";
  return failures == 0 ? 0 : 1;
}
