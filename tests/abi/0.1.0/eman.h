/** @file
 * eman.h: the C interface of libeman, equivariant mesh attention networks.
 *
 * Copyright the libeman authors. Licensed under the Apache License 2.0.
 *
 * CONVENTIONS, which hold wherever a function does not say otherwise
 *
 * Status      Functions that can fail return an eman_status: EMAN_OK (0) or a
 *             negative EMAN_E_... code. eman_last_error() then says what is
 *             wrong and with which face, vertex or argument. On failure no
 *             output is written, and objects are as they were.
 *             Every function may fail with EMAN_E_INVALID_ARGUMENT (a NULL or
 *             unusable argument, a handle of another kind), EMAN_E_NOMEM,
 *             EMAN_E_FORKED or EMAN_E_INTERNAL; comments list other codes.
 * Handles     eman_x_create gives an object to the caller, who returns it with
 *             eman_x_free. Freeing NULL does nothing. An object may be freed
 *             before those that it was made from, and after.
 * Pointers    are borrowed for the call: nothing keeps a pointer of the
 *             caller's after the function returns.
 * Arrays      are passed as eman_view and eman_mutable_view: any strides, any
 *             alignment. The caller allocates outputs. Nothing outside the
 *             rows and columns of a view is read or written.
 * Threads     All functions may be called from any thread at any time. Objects
 *             may be used from many threads at once, and none waits for
 *             another: what uses a mesh during eman_mesh_update sees it as it
 *             was. Do not begin a call with an object that is being freed.
 * Callbacks   Progress and log functions run on the calling thread, in its own
 *             floating-point environment. They may call the library, also on
 *             the same objects; they must return (no longjmp, no exception).
 *             The fraction of progress never falls within a call.
 * Options     Structs that may grow begin with struct_size. Fill them with
 *             eman_x_options_init(&x, sizeof x), then set what differs.
 * fork        After fork() without exec() the child cannot use the library:
 *             each function returns EMAN_E_FORKED, and frees do nothing.
 * Floating    The caller's floating-point environment (flush to zero, rounding)
 * point       neither changes results nor is changed.
 * Results     are the same bits for any number of threads.
 *
 * V is the number of vertices, F of faces, E of directed edges, P of relative
 * powers. Sections (§) are those of "Equivariant Mesh Attention Networks",
 * Basu et al., TMLR 2022.
 */
#ifndef EMAN_H
#define EMAN_H

#include <stdint.h>

#define EMAN_VERSION_MAJOR 0 /**< of this header; eman_version gives the library's */
#define EMAN_VERSION_MINOR 1 /**< likewise */
#define EMAN_VERSION_PATCH 0 /**< likewise */
/** The version of this header; eman_version_string gives the library's. */
#define EMAN_VERSION_STRING "0.1.0"

/** The binary interface of this header. A library serves every program built
 * with the same or a lower number and the same soname. */
#define EMAN_ABI_VERSION 1

/** What the library exports. */
#if defined(_WIN32) && !defined(EMAN_BUILDING)
#define EMAN_API __declspec(dllimport)
#else
#define EMAN_API
#endif

/** The compiler warns where this status is not looked at. */
#if defined(__GNUC__)
#define EMAN_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define EMAN_CHECK_RESULT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ status */

/** What a function returns: EMAN_OK or one of the codes below. */
typedef int32_t eman_status;

#define EMAN_OK 0 /**< the call did what it says */
/* arguments */
#define EMAN_E_INVALID_ARGUMENT (-100) /**< NULL, a wrong kind of handle, a value out of range */
#define EMAN_E_BUFFER_TOO_SMALL (-101) /**< the message says how much is needed */
#define EMAN_E_VERSION (-102)          /**< a struct has set fields that this library does not know */
#define EMAN_E_UNSUPPORTED (-103)      /**< asked for what this build or processor lacks */
/* data */
#define EMAN_E_INVALID_MESH (-200)  /**< the message names the face or vertex */
#define EMAN_E_INVALID_MODEL (-201) /**< the message names the field or tensor */
#define EMAN_E_DIVERGED (-202)      /**< a training's features, loss or gradient are no finite numbers */
/* resources */
#define EMAN_E_NOMEM (-300) /**< the context's limit or the system's memory is exhausted */
#define EMAN_E_IO (-301)    /**< a file could not be read or written */
/* control */
#define EMAN_E_CANCELLED (-400) /**< the caller's cancel word or progress function ended the call */
#define EMAN_E_FORKED (-401)    /**< called in a child of fork() */
/* faults of the library */
#define EMAN_E_INTERNAL (-500) /**< a fault in the library; it can still be used */

/**
 * The name of a status, such as "EMAN_E_INVALID_MESH".
 *
 * @param status any number
 * @return a static string, never NULL; "EMAN_E_UNKNOWN" for other numbers
 * @since ABI 1
 */
EMAN_API const char *eman_status_name(eman_status status);

/**
 * What went wrong in this thread's last eman_ call, in words: for instance
 * "face 812: vertex index 6890 is out of range [0, 6890)".
 *
 * @return UTF-8 text, never NULL, empty if the last call succeeded; valid
 *         until this thread's next call of another eman_ function
 * @since ABI 1
 */
EMAN_API const char *eman_last_error(void);

/* ------------------------------------------------------------------ library */

/** The library's version, 10000·major + 100·minor + patch. @since ABI 1 */
EMAN_API int32_t eman_version(void);

/** The library's version, such as "0.1.0"; a static string. @since ABI 1 */
EMAN_API const char *eman_version_string(void);

/** The library's EMAN_ABI_VERSION. @since ABI 1 */
EMAN_API int32_t eman_abi_version(void);

/**
 * Facts about the library as a JSON object: version, abi_version, go_version,
 * platform, instruction_set (what the automatic choice takes on this
 * processor), threads (processors available).
 *
 * @param text      receives the NUL-terminated text; may be NULL if capacity is 0
 * @param capacity  bytes at text
 * @param length    receives the length of the text without its NUL, even when
 *                  text is too small
 * @return EMAN_E_BUFFER_TOO_SMALL if capacity ≤ the length
 * @since ABI 1
 */
EMAN_API eman_status eman_build_info(char *text, int64_t capacity, int64_t *length) EMAN_CHECK_RESULT;

/**
 * Returns unused memory to the system. The library otherwise keeps some for
 * later calls, such as what models need of the meshes that they have seen (which
 * the next call then computes anew). Takes milliseconds.
 *
 * @since ABI 1
 */
EMAN_API eman_status eman_trim(void);

/* ------------------------------------------------------------------ arrays */

/** The type of an array's elements. */
typedef int32_t eman_dtype;
#define EMAN_FLOAT32 1 /**< float */
#define EMAN_FLOAT64 2 /**< double */
#define EMAN_INT32 3   /**< int32_t */
#define EMAN_UINT32 4  /**< uint32_t */
#define EMAN_INT64 5   /**< int64_t */

/**
 * A two-dimensional array that is read: element (i, j) lies at
 * data + i·row_stride + j·column_stride.
 *
 * Strides are in bytes and may be negative; a stride of 0 means packed
 * (column_stride: the size of an element; row_stride: columns of those). data
 * may be NULL if rows or columns is 0. A list is an array with one column.
 */
typedef struct eman_view {
  const void *data;      /**< the element (0, 0) */
  int64_t rows;          /**< how many */
  int64_t columns;       /**< how many */
  int64_t row_stride;    /**< bytes from a row to the next; 0: packed */
  int64_t column_stride; /**< bytes from an element to the next in its row; 0: packed */
  eman_dtype dtype;      /**< EMAN_FLOAT32 … */
  int32_t reserved;      /**< 0 */
} eman_view;

/**
 * A two-dimensional array that is written; as eman_view. It must have the
 * columns that the function says and at least as many rows; more are left
 * alone. Too few rows are EMAN_E_BUFFER_TOO_SMALL. Real results go to FLOAT32
 * or FLOAT64, integer ones to INT32, UINT32 or INT64. A result too large for
 * FLOAT32 is EMAN_E_INVALID_ARGUMENT, and rows may have been written.
 */
typedef struct eman_mutable_view {
  void *data;            /**< the element (0, 0) */
  int64_t rows;          /**< how many */
  int64_t columns;       /**< how many */
  int64_t row_stride;    /**< bytes from a row to the next; 0: packed */
  int64_t column_stride; /**< bytes from an element to the next in its row; 0: packed */
  eman_dtype dtype;      /**< EMAN_FLOAT32 … */
  int32_t reserved;      /**< 0 */
} eman_mutable_view;

/* ------------------------------------------------------------------ context */

/** The threads, memory and log of a group of objects. */
typedef struct eman_context eman_context;

/** Instruction sets of the kernels. All give results within rounding of GENERIC. */
typedef int32_t eman_instruction_set;
#define EMAN_ISA_AUTO 0    /**< the fastest that the processor has */
#define EMAN_ISA_GENERIC 1 /**< plain code, on every processor */
#define EMAN_ISA_AVX2 2    /**< x86-64 with AVX2 and FMA */
#define EMAN_ISA_AVX512 3  /**< x86-64 with AVX-512 F, BW, DQ and VL */
#define EMAN_ISA_NEON 4    /**< arm64 */

#define EMAN_LOG_ERROR 1   /**< a fault of the library */
#define EMAN_LOG_WARNING 2 /**< something to look into */
#define EMAN_LOG_INFO 3    /**< something to know */

/** Receives a message on the thread whose call it concerns. */
typedef void (*eman_log_function)(void *user, int32_t level, const char *message);

/** The choices of eman_context_create. */
typedef struct eman_context_options {
  uint32_t struct_size;                 /**< set by eman_context_options_init */
  int32_t threads;                      /**< 0: one for each processor; default 0; see eman_context_info */
  int64_t memory_limit;                 /**< bytes in large arrays, 0: no limit; default 0 */
  eman_instruction_set instruction_set; /**< default EMAN_ISA_AUTO */
  int32_t reserved;                     /**< 0 */
  eman_log_function log;                /**< default NULL; gets the details of internal faults. It must
                                             stay valid until the context and all its objects are freed */
  void *log_user;                       /**< passed to log; likewise */
} eman_context_options;

/**
 * Fills options with the defaults.
 *
 * @param options      the struct
 * @param struct_size  sizeof *options
 * @since ABI 1
 */
EMAN_API eman_status eman_context_options_init(eman_context_options *options, uint32_t struct_size);

/**
 * Makes a context. It starts no thread before work is given to it, and leaves
 * the caller's threads alone.
 *
 * @param options  NULL for the defaults
 * @param context  receives the context
 * @return EMAN_E_UNSUPPORTED for an instruction set that the processor or this
 *         build lacks
 * @since ABI 1
 */
EMAN_API eman_status eman_context_create(const eman_context_options *options, eman_context **context) EMAN_CHECK_RESULT;

/**
 * Frees a context. Objects made with it remain usable. @since ABI 1
 */
EMAN_API void eman_context_free(eman_context *context);

/** What a context has and uses. */
typedef struct eman_context_info {
  uint32_t struct_size;                 /**< set by the caller */
  int32_t threads;                      /**< threads that a call may use, the caller's among them; at
                                             most the larger of 16 and the number of processors */
  eman_instruction_set instruction_set; /**< the one chosen, never AUTO */
  int32_t reserved;                     /**< 0 */
  int64_t memory_used;                  /**< bytes in large arrays of all its objects */
  int64_t memory_peak;                  /**< the most there have been */
  int64_t memory_limit;                 /**< 0: none */
} eman_context_info;

/**
 * Describes a context.
 *
 * @param context  the context
 * @param info     struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_context_describe(const eman_context *context, eman_context_info *info) EMAN_CHECK_RESULT;

/** Called on the calling thread with the fraction done; non-zero cancels. */
typedef int32_t (*eman_progress_function)(void *user, double fraction);

/** How a long call is watched and stopped. */
typedef struct eman_control {
  uint32_t struct_size;            /**< set by eman_control_init */
  int32_t reserved;                /**< 0 */
  const volatile int32_t *cancel;  /**< polled; non-zero cancels; NULL: never */
  eman_progress_function progress; /**< NULL: none */
  void *user;                      /**< passed to progress */
} eman_control;

/** Fills a control that watches nothing. @since ABI 1 */
EMAN_API eman_status eman_control_init(eman_control *control, uint32_t struct_size);

/* ------------------------------------------------------------------ mesh */

/** A triangle mesh with its neighbours and frames (§3). */
typedef struct eman_mesh eman_mesh;

/* How face normals are weighted in a vertex normal. */
#define EMAN_NORMALS_AREA 0  /**< by area (the paper) */
#define EMAN_NORMALS_ANGLE 1 /**< by the angle at the vertex (the authors' code) */

/* How the first axis of each vertex's frame is chosen. */
#define EMAN_GAUGE_FIRST_NEIGHBOR 0 /**< towards the neighbour of lowest index */
#define EMAN_GAUGE_RANDOM 1         /**< that, turned by an angle drawn from seed */
#define EMAN_GAUGE_CUSTOM 2         /**< the caller's frames, their normals too */

/* What becomes of a face that names a vertex twice. */
#define EMAN_DEGENERATE_ERROR 0 /**< EMAN_E_INVALID_MESH */
#define EMAN_DEGENERATE_DROP 1  /**< left out, and listed by eman_mesh_examine */

/** The choices of eman_mesh_create. */
typedef struct eman_mesh_options {
  uint32_t struct_size;    /**< set by eman_mesh_options_init */
  int32_t normals;         /**< EMAN_NORMALS_...; default AREA */
  int32_t gauge;           /**< EMAN_GAUGE_...; default FIRST_NEIGHBOR */
  int32_t degenerate;      /**< EMAN_DEGENERATE_...; default ERROR */
  uint64_t seed;           /**< of the random gauge; default 0 */
  const eman_view *frames; /**< custom gauge: V×9 reals, rows e1, e2, n of each vertex; else NULL */
} eman_mesh_options;

/** Fills options with the defaults. @since ABI 1 */
EMAN_API eman_status eman_mesh_options_init(eman_mesh_options *options, uint32_t struct_size);

/**
 * Builds a mesh. Time and memory are linear in its size; about 210 bytes a
 * vertex are kept.
 *
 * Two vertices are neighbours if they share an edge of a face and do not
 * coincide. Open, non-manifold and unoriented meshes, isolated vertices and
 * faces without area are accepted; eman_mesh_examine reports them.
 *
 * @param context    the context
 * @param positions  V×3 reals, any unit of length, copied
 * @param faces      F×3 integers in [0, V), copied
 * @param options    NULL for the defaults
 * @param control    NULL for none
 * @param mesh       receives the mesh
 * @return EMAN_E_INVALID_MESH: a coordinate is not finite or beyond 1e300, an
 *         index is out of range, a face names a vertex twice, a custom frame
 *         is not orthonormal. EMAN_E_UNSUPPORTED: more than 2^31 − 1 vertices,
 *         corners or directed edges. EMAN_E_CANCELLED.
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_create(eman_context *context, const eman_view *positions, const eman_view *faces,
                                      const eman_mesh_options *options, const eman_control *control,
                                      eman_mesh **mesh) EMAN_CHECK_RESULT;

/** Frees a mesh. @since ABI 1 */
EMAN_API void eman_mesh_free(eman_mesh *mesh);

/**
 * Moves the vertices of a mesh and keeps its faces and neighbours: for
 * deforming meshes, several times faster than building anew. The first update
 * takes another 96 bytes a vertex.
 *
 * @param mesh       the mesh
 * @param positions  V×3 reals, copied
 * @param frames     V×9 reals for a mesh with the custom gauge, else NULL
 * @param control    NULL for none
 * @return EMAN_E_INVALID_MESH as in eman_mesh_create; EMAN_E_CANCELLED
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_update(eman_mesh *mesh, const eman_view *positions, const eman_view *frames,
                                      const eman_control *control) EMAN_CHECK_RESULT;

/**
 * The size of a mesh.
 *
 * @param mesh      the mesh
 * @param vertices  receives V
 * @param faces     receives F, without dropped faces
 * @param edges     receives E: each pair of neighbours counts twice. It can
 *                  change with eman_mesh_update where vertices coincide.
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_counts(const eman_mesh *mesh, int64_t *vertices, int64_t *faces,
                                      int64_t *edges) EMAN_CHECK_RESULT;

/** Copies the V×3 positions. @since ABI 1 */
EMAN_API eman_status eman_mesh_positions(const eman_mesh *mesh, const eman_mutable_view *positions) EMAN_CHECK_RESULT;

/** Copies the F×3 vertex indices of the faces that were kept. @since ABI 1 */
EMAN_API eman_status eman_mesh_faces(const eman_mesh *mesh, const eman_mutable_view *faces) EMAN_CHECK_RESULT;

/**
 * The unit normals of the vertices (§3.2).
 *
 * @param mesh     the mesh
 * @param normals  receives V×3 reals
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_vertex_normals(const eman_mesh *mesh,
                                              const eman_mutable_view *normals) EMAN_CHECK_RESULT;

/**
 * The gauges: an orthonormal right-handed frame of each vertex.
 *
 * @param mesh    the mesh
 * @param frames  receives V×9 reals, rows e1, e2, n of each vertex
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_frames(const eman_mesh *mesh, const eman_mutable_view *frames) EMAN_CHECK_RESULT;

/**
 * The neighbours in compressed sparse rows: those of vertex p are
 * indices[offsets[p]] … indices[offsets[p+1]−1], in increasing order. Directed
 * edge e is the pair (p, indices[e]); messages go from the neighbour to p.
 *
 * @param mesh     the mesh
 * @param offsets  receives (V+1)×1 integers
 * @param indices  receives E×1 integers
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_neighbors(const eman_mesh *mesh, const eman_mutable_view *offsets,
                                         const eman_mutable_view *indices) EMAN_CHECK_RESULT;

/** For each directed edge the number of its reverse, E×1 integers. @since ABI 1 */
EMAN_API eman_status eman_mesh_reverse_edges(const eman_mesh *mesh, const eman_mutable_view *edges) EMAN_CHECK_RESULT;

/**
 * The polar angle of each neighbour in the gauge of its vertex (the log map).
 *
 * @param mesh    the mesh
 * @param angles  receives E×1 reals, radians in (−π, π]; 0 for a neighbour
 *                straight above or below
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_edge_angles(const eman_mesh *mesh, const eman_mutable_view *angles) EMAN_CHECK_RESULT;

/**
 * The angle g of the parallel transport from each neighbour q to its vertex p:
 * ρ(g) f_q are the coordinates at p of the feature f_q (§3.4).
 *
 * @param mesh    the mesh
 * @param angles  receives E×1 reals, radians in (−π, π]
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_transport_angles(const eman_mesh *mesh,
                                                const eman_mutable_view *angles) EMAN_CHECK_RESULT;

/* What RelTan vectors are given in. */
#define EMAN_SPACE_TANGENT 0 /**< two coordinates in the gauge of the vertex */
#define EMAN_SPACE_AMBIENT 1 /**< vectors of space, three coordinates */

/** The choices of eman_mesh_reltan. */
typedef struct eman_reltan_options {
  uint32_t struct_size; /**< set by eman_reltan_options_init */
  int32_t space;        /**< EMAN_SPACE_...; default TANGENT */
  double degree_power;  /**< default 1.5 (app. B.1) */
  double constant;      /**< default 1: the factor is 1/(constant·N^degree_power) */
} eman_reltan_options;

/** Fills options with the defaults. @since ABI 1 */
EMAN_API eman_status eman_reltan_options_init(eman_reltan_options *options, uint32_t struct_size);

/**
 * Relative tangential features (§4): for each relative power r,
 *
 *   v_p(r) = N^(−3/2) π_p[ (Σ_q d/|d|^r)·(Σ_q |d|^(r−1)) ],   d = q − p,
 *
 * over the N neighbours q of p, π_p the projection on the tangent plane. They
 * have no unit, turn with the mesh, and do not change under translation and
 * scaling. 0 at an isolated vertex.
 *
 * @param mesh      the mesh
 * @param powers    the relative powers r, finite
 * @param count     P, from 1 to 64
 * @param options   NULL for the defaults
 * @param control   NULL for none
 * @param features  receives V×2P reals (V×3P in ambient space): the vector of
 *                  the first power, then that of the second, …
 * @return EMAN_E_INVALID_MESH if a vector overflows (a huge power on a needle);
 *         the message names the vertex. EMAN_E_CANCELLED. In both cases rows
 *         of features may have been written.
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_reltan(const eman_mesh *mesh, const double *powers, int32_t count,
                                      const eman_reltan_options *options, const eman_control *control,
                                      const eman_mutable_view *features) EMAN_CHECK_RESULT;

/**
 * The features of Gauge Equivariant Transformers (app. G): ⟨p, n⟩, ⟨p, e1⟩,
 * ⟨p, e2⟩. They have the unit of the positions and depend on the origin.
 *
 * @param mesh      the mesh
 * @param features  receives V×3 reals; 0 at an isolated vertex
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_get_features(const eman_mesh *mesh, const eman_mutable_view *features) EMAN_CHECK_RESULT;

/**
 * The connected components.
 *
 * @param mesh    the mesh
 * @param labels  receives V×1 integers: the number of each vertex's component,
 *                in the order of their lowest vertices; an isolated vertex is
 *                a component of its own
 * @param count   receives the number of components
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_components(const eman_mesh *mesh, const eman_mutable_view *labels,
                                          int64_t *count) EMAN_CHECK_RESULT;

/* ------------------------------------------------------------------ mesh doctor */

/** What the mesh doctor found in a mesh at the time of the call. */
typedef struct eman_report eman_report;

/** A kind of finding: vertices, faces (by the caller's numbers), or edges. */
typedef int32_t eman_finding;
#define EMAN_ISOLATED_VERTICES 0     /**< vertices of no face */
#define EMAN_COINCIDENT_VERTICES 1   /**< at the place of a vertex with a lower index */
#define EMAN_ZERO_NORMAL_VERTICES 2  /**< whose faces define no normal; they got a substitute */
#define EMAN_NON_MANIFOLD_VERTICES 3 /**< whose faces do not form one fan */
#define EMAN_BOUNDARY_EDGES 4        /**< of one face */
#define EMAN_NON_MANIFOLD_EDGES 5    /**< of three faces or more */
#define EMAN_INCONSISTENT_EDGES 6    /**< whose two faces are oriented against each other */
#define EMAN_ZERO_LENGTH_EDGES 7     /**< between coincident vertices */
#define EMAN_DROPPED_FACES 8         /**< left out as they name a vertex twice */
#define EMAN_ZERO_AREA_FACES 9       /**< with their corners on a line */
#define EMAN_NEEDLE_FACES 10         /**< more than 1000 times as long as high */
#define EMAN_DUPLICATE_FACES 11      /**< of the same vertices as an earlier face */
#define EMAN_FINDING_COUNT 12        /**< grows with the library */

/** The sizes and judgements of a report. */
typedef struct eman_report_summary {
  uint32_t struct_size;         /**< set by the caller */
  int32_t closed;               /**< 1: there are faces and no boundary edges */
  int32_t manifold;             /**< 1: no non-manifold edge or vertex */
  int32_t oriented;             /**< 1: no inconsistent edge */
  int64_t vertex_count;         /**< V */
  int64_t face_count;           /**< F, without dropped ones */
  int64_t edge_count;           /**< directed edges */
  int64_t component_count;      /**< of the vertices that have faces */
  int64_t euler_characteristic; /**< vertices − edges + faces, without isolated vertices */
  int64_t min_degree;           /**< neighbours of a vertex that has any */
  int64_t max_degree;           /**< likewise */
  double area;                  /**< in squared units of the positions; infinite beyond double */
  double min_length;            /**< of the edges, in units of the positions */
  double mean_length;           /**< likewise */
  double max_length;            /**< likewise */
} eman_report_summary;

/**
 * Examines a mesh: the mesh doctor. Linear but for sorting.
 *
 * @param mesh     the mesh
 * @param control  NULL for none
 * @param report   receives the report, to be freed with eman_report_free
 * @return EMAN_E_CANCELLED
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_examine(const eman_mesh *mesh, const eman_control *control,
                                       eman_report **report) EMAN_CHECK_RESULT;

/** Frees a report. @since ABI 1 */
EMAN_API void eman_report_free(eman_report *report);

/**
 * The sizes and judgements of a report.
 *
 * @param report   the report
 * @param summary  struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_report_summarize(const eman_report *report, eman_report_summary *summary) EMAN_CHECK_RESULT;

/**
 * How many elements a finding has.
 *
 * @param report   the report
 * @param finding  EMAN_ISOLATED_VERTICES …
 * @param count    receives the number of vertices, edges or faces
 * @param width    receives the indices of each: 2 for edges (the lower vertex
 *                 first), else 1
 * @since ABI 1
 */
EMAN_API eman_status eman_report_count(const eman_report *report, eman_finding finding, int64_t *count,
                                       int32_t *width) EMAN_CHECK_RESULT;

/**
 * The elements of a finding, in increasing order.
 *
 * @param report   the report
 * @param finding  EMAN_ISOLATED_VERTICES …
 * @param indices  receives count×width integers (eman_report_count)
 * @since ABI 1
 */
EMAN_API eman_status eman_report_indices(const eman_report *report, eman_finding finding,
                                         const eman_mutable_view *indices) EMAN_CHECK_RESULT;

/** The name of a finding, such as "boundary_edges"; "unknown" for other numbers. @since ABI 1 */
EMAN_API const char *eman_finding_name(eman_finding finding);

/* ------------------------------------------------------------------ transformations (§3.5) */

/**
 * A copy of a mesh with each frame turned about its normal. It has the custom
 * gauge and shares memory with the original. The coordinates z_n of a feature
 * at p become exp(−i·n·angles[p])·z_n.
 *
 * @param mesh     the mesh
 * @param angles   V×1 reals, radians
 * @param control  NULL for none
 * @param changed  receives the new mesh
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_change_gauge(const eman_mesh *mesh, const eman_view *angles, const eman_control *control,
                                            eman_mesh **changed) EMAN_CHECK_RESULT;

/**
 * A copy of a mesh moved by x ↦ scale·R·x + translation. Custom frames turn
 * with it; other gauges are chosen anew by their rule. Vectors in ambient
 * space turn by R, tangent coordinates stay.
 *
 * @param mesh         the mesh
 * @param rotation     nine numbers, R row by row
 * @param translation  three numbers, in the unit of the positions
 * @param scale        positive
 * @param control      NULL for none
 * @param moved        receives the new mesh
 * @return EMAN_E_INVALID_MESH if a coordinate overflows
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_transform(const eman_mesh *mesh, const double *rotation, const double *translation,
                                         double scale, const eman_control *control,
                                         eman_mesh **moved) EMAN_CHECK_RESULT;

/**
 * A renumbered copy of a mesh: vertex i is vertex_order[i] of the original,
 * face i is face_order[i], beginning at that face's corner corner_shift[i].
 * Custom frames move with their vertices; other gauges are chosen anew.
 *
 * @param mesh          the mesh
 * @param vertex_order  V×1 integers, a permutation of 0 … V−1
 * @param face_order    F×1 integers, a permutation of 0 … F−1; NULL: as it was
 * @param corner_shift  F×1 integers, 0, 1 or 2; NULL: all 0
 * @param control       NULL for none
 * @param permuted      receives the new mesh
 * @since ABI 1
 */
EMAN_API eman_status eman_mesh_permute(const eman_mesh *mesh, const eman_view *vertex_order,
                                       const eman_view *face_order, const eman_view *corner_shift,
                                       const eman_control *control, eman_mesh **permuted) EMAN_CHECK_RESULT;

/** Independent uniform angles in [−π, π), n×1 reals, determined by seed. @since ABI 1 */
EMAN_API eman_status eman_random_angles(uint64_t seed, const eman_mutable_view *angles) EMAN_CHECK_RESULT;

/** A uniform rotation matrix, nine numbers row by row, determined by seed. @since ABI 1 */
EMAN_API eman_status eman_random_rotation(uint64_t seed, double *rotation) EMAN_CHECK_RESULT;

/** A random order of 0 … n−1, n×1 integers, determined by seed. @since ABI 1 */
EMAN_API eman_status eman_random_permutation(uint64_t seed, const eman_mutable_view *order) EMAN_CHECK_RESULT;

/* ------------------------------------------------------------------ models (§5, §6) */

/** A network with its parameters. */
typedef struct eman_model eman_model;

/** A named tensor of the caller's, packed in C order, FLOAT32 or FLOAT64. */
typedef struct eman_tensor {
  const char *name;     /**< UTF-8, NUL-terminated */
  const void *data;     /**< may be NULL if it has no elements */
  const int64_t *shape; /**< rank sizes; may be NULL if rank is 0 */
  int32_t rank;         /**< at most 8 */
  eman_dtype dtype;     /**< EMAN_FLOAT32 or EMAN_FLOAT64 */
} eman_tensor;

/**
 * Makes a network with random parameters.
 *
 * The description is a JSON object. "preset" is "default" (what is recommended
 * for meshes of one triangulation: exactly equivariant), "surface" (for anybody's
 * mesh: likewise, on samples of the surface), "paper" or "authors" (the published
 * code); further fields replace choices of the preset: kind ("eman", "gem",
 * "spiral"), task ("segmentation", "classification"), classes, labels, features
 * ("reltan", "get", "xyz"; "moments", "moments_reltan" of samples), powers,
 * width, blocks, max_order, band_limit, rings, heads, bias, nonlinearity,
 * aggregation, hidden, surface and others: eman_model_spec shows all.
 *
 * A network with the field surface, an object, does not see how a mesh is
 * triangulated: its layers run on points spread evenly over the surface, which
 * the shape alone defines, and the last features are interpolated at the
 * vertices. blocks is 0 for it, and kind is not "spiral". The object's fields:
 *
 *   points          how many on each level, the finest first, falling: 1 to 8
 *                   levels of 1 to 1048576; [1024, 256, 64]. The points of a level
 *                   are the first of the level before. A surface that has fewer
 *                   distinct places has fewer points.
 *   neighbors       of a point on its own level, and on the finer one on the way
 *                   down: 1 to 1024; 24. The nearest in space whose normals
 *                   agree; more where several are equally far.
 *   up_neighbors    of a point on the next coarser level, on the way up: 1 to
 *                   1024; 6
 *   scales          the neighbourhoods of which moments are taken, in neighbours,
 *                   rising: up to 16 of 1 to 4096; [24, 48, 192]. None without
 *                   the features moments.
 *   lift_neighbors  points that a vertex takes its features from: 1 to 1024; 6
 *   blocks          residual blocks on each level on the way down, then on each
 *                   but the coarsest on the way up: 2·levels − 1 numbers from 1
 *                   to 256; [2, 2, 2, 2, 2]
 *
 * The features "moments" are, for each scale, the means of d⊗d, n⊗n, d⊗n and d
 * over a point's neighbours, d being the way to the neighbour in units of the
 * scale's root mean square and n its normal, in their irreducible parts:
 * 8 channels of ρ0, 5 of ρ1 and 3 of ρ2. "moments_reltan" has one more
 * channel for each of powers, "reltan" only these.
 *
 * A mesh without faces, whose custom frames give the normals, is a cloud of
 * points: these networks label it as well.
 *
 * @param context      the context whose threads and memory the model uses
 * @param description  NUL-terminated JSON
 * @param seed         determines the parameters, together with the description
 * @param model        receives the model
 * @return EMAN_E_INVALID_MODEL naming the field
 * @since ABI 1
 */
EMAN_API eman_status eman_model_create(eman_context *context, const char *description, uint64_t seed,
                                       eman_model **model) EMAN_CHECK_RESULT;

/**
 * Reads a model file (safetensors), which must be a regular file.
 *
 * @param context  the context whose threads and memory the model uses
 * @param path     UTF-8, NUL-terminated
 * @param model    receives the model
 * @return EMAN_E_IO, or EMAN_E_INVALID_MODEL naming the tensor or field
 * @since ABI 1
 */
EMAN_API eman_status eman_model_load(eman_context *context, const char *path, eman_model **model) EMAN_CHECK_RESULT;

/**
 * Reads the content of a model file from memory.
 *
 * @param context  the context whose threads and memory the model uses
 * @param data     the bytes
 * @param size     how many
 * @param model    receives the model
 * @return EMAN_E_INVALID_MODEL naming the tensor or field
 * @since ABI 1
 */
EMAN_API eman_status eman_model_load_memory(eman_context *context, const void *data, int64_t size,
                                            eman_model **model) EMAN_CHECK_RESULT;

/**
 * Converts a state_dict of the authors' published code.
 *
 * @param context  the context whose threads and memory the model uses
 * @param config   JSON object: how the network was built. "model" (RelTanEMAN,
 *                 EMAN, RelTanGemCNN, GemCNN, SpiralNet) is needed; task,
 *                 n_rings, max_order, n_heads, equiv_bias, regular_non_lin,
 *                 rel_power_list, deg_power, rel_power_const and null_isolated
 *                 have the authors' defaults
 * @param tensors  the state_dict; buffers (kernel, dft) may be absent
 * @param count    how many tensors
 * @param model    receives the model
 * @return EMAN_E_INVALID_MODEL naming the tensor that is missing, unknown or of
 *         another shape, or the field
 * @since ABI 1
 */
EMAN_API eman_status eman_model_from_authors(eman_context *context, const char *config, const eman_tensor *tensors,
                                             int32_t count, eman_model **model) EMAN_CHECK_RESULT;

/** Frees a model. @since ABI 1 */
EMAN_API void eman_model_free(eman_model *model);

/**
 * Writes a model file (safetensors), which at every moment is the old one or
 * the new one as a whole. A symbolic link is followed; the permissions of an
 * old file stay.
 *
 * @param model  the model
 * @param path   UTF-8, NUL-terminated
 * @return EMAN_E_IO
 * @since ABI 1
 */
EMAN_API eman_status eman_model_save(const eman_model *model, const char *path) EMAN_CHECK_RESULT;

/**
 * Writes the content of a model file to memory.
 *
 * @param model     the model
 * @param data      receives the bytes; may be NULL if capacity is 0
 * @param capacity  bytes at data
 * @param size      receives the size of the file, even when data is too small
 * @return EMAN_E_BUFFER_TOO_SMALL if capacity < the size
 * @since ABI 1
 */
EMAN_API eman_status eman_model_save_memory(const eman_model *model, void *data, int64_t capacity,
                                            int64_t *size) EMAN_CHECK_RESULT;

/**
 * The complete description of a model as JSON.
 *
 * @param model     the model
 * @param text      receives the NUL-terminated text; may be NULL if capacity is 0
 * @param capacity  bytes at text
 * @param length    receives the length without the NUL, even when text is too small
 * @return EMAN_E_BUFFER_TOO_SMALL if capacity ≤ the length
 * @since ABI 1
 */
EMAN_API eman_status eman_model_spec(const eman_model *model, char *text, int64_t capacity,
                                     int64_t *length) EMAN_CHECK_RESULT;

/** What a tensor of a model is. */
typedef struct eman_parameter_info {
  uint32_t struct_size; /**< set by the caller */
  int32_t rank;         /**< at most 4 */
  int64_t shape[4];     /**< 1 beyond rank */
  int64_t size;         /**< the product of the shape */
  char name[128];       /**< UTF-8, NUL-terminated */
} eman_parameter_info;

/** How many tensors of parameters a model has, into count. @since ABI 1 */
EMAN_API eman_status eman_model_parameter_count(const eman_model *model, int32_t *count) EMAN_CHECK_RESULT;

/**
 * Describes a tensor.
 *
 * @param model  the model
 * @param index  from 0; the order is that of the network
 * @param info   struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_model_describe_parameter(const eman_model *model, int32_t index,
                                                   eman_parameter_info *info) EMAN_CHECK_RESULT;

/**
 * Copies a tensor.
 *
 * @param model   the model
 * @param index   from 0
 * @param values  receives size×1 reals, C order
 * @since ABI 1
 */
EMAN_API eman_status eman_model_get_parameter(const eman_model *model, int32_t index,
                                              const eman_mutable_view *values) EMAN_CHECK_RESULT;

/**
 * Replaces parameters: all of the given ones, or none. Calls that are running
 * finish with the old ones.
 *
 * @param model    the model
 * @param tensors  names and shapes of eman_model_describe_parameter, finite values
 * @param count    how many tensors
 * @return EMAN_E_INVALID_MODEL naming the tensor
 * @since ABI 1
 */
EMAN_API eman_status eman_model_set_parameters(eman_model *model, const eman_tensor *tensors,
                                               int32_t count) EMAN_CHECK_RESULT;

/** What a layer in front of the dense ones is. */
typedef struct eman_layer_info {
  uint32_t struct_size; /**< set by the caller */
  int32_t channels;     /**< C of its features */
  int32_t order;        /**< L: its features have the types ρ0 … ρL */
  int32_t heads;        /**< of its attention; 0: it has none */
  char name[64];        /**< UTF-8, NUL-terminated */
} eman_layer_info;

/** How many layers a model has in front of its dense ones, into count. @since ABI 1 */
EMAN_API eman_status eman_model_layer_count(const eman_model *model, int32_t *count) EMAN_CHECK_RESULT;

/**
 * Describes a layer.
 *
 * @param model  the model
 * @param layer  from 0
 * @param info   struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_model_describe_layer(const eman_model *model, int32_t layer,
                                               eman_layer_info *info) EMAN_CHECK_RESULT;

/**
 * About how many bytes of large arrays a call of eman_model_predict takes
 * beside the mesh. eman_model_logits takes no more than that and its output.
 * Part of it is kept with the mesh for the next call, until it is updated or
 * freed, memory runs short, or eman_trim is called: the geometry of the edges,
 * or the samples of the surface.
 *
 * @param model     the model
 * @param vertices  V
 * @param edges     E, directed edges
 * @param bytes     receives the estimate
 * @since ABI 1
 */
EMAN_API eman_status eman_model_estimate(const eman_model *model, int64_t vertices, int64_t edges,
                                         int64_t *bytes) EMAN_CHECK_RESULT;

/** What a call has to compute. */
typedef struct eman_work {
  uint32_t struct_size; /**< set by the caller */
  int32_t reserved;     /**< 0 */
  double flops;         /**< floating-point operations of the layers, two for each multiply-add */
  double seconds;       /**< about how long it takes on the threads of the context */
} eman_work;

/**
 * About how much work eman_model_predict is on a mesh that it has not seen. The
 * operations are counted: they are those of the matrices and of the edge passes.
 * Seconds are these at the speed of the processor, which the first such call of a
 * context measures within some milliseconds, and what the geometry of the edges or
 * the samples of the surface take; for one thread of an AMD Zen 4 they were between
 * 0.7 and 1.4 times the time of calls and steps. Threads are taken to share the
 * work evenly. Later calls on the same mesh take less: its part is kept.
 *
 * @param model     the model
 * @param vertices  V
 * @param edges     E, directed edges
 * @param work      struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_model_estimate_work(const eman_model *model, int64_t vertices, int64_t edges,
                                              eman_work *work) EMAN_CHECK_RESULT;

/**
 * The labels: of each vertex, or of the mesh for classification. The
 * log-probabilities are not stored, however many classes there are. Of equally
 * probable classes the lowest is taken.
 *
 * @param model    the model
 * @param mesh     the mesh
 * @param control  NULL for none
 * @param labels   receives V×1 integers (1×1 for classification)
 * @return EMAN_E_INVALID_MESH if an input feature is too large for float32, or
 *         if a network on a surface finds neither a face nor a normal of the
 *         caller's; EMAN_E_CANCELLED
 * @since ABI 1
 */
EMAN_API eman_status eman_model_predict(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                                        const eman_mutable_view *labels) EMAN_CHECK_RESULT;

/**
 * The k most probable classes, the most probable first.
 *
 * @param model          the model
 * @param mesh           the mesh
 * @param k              from 1 to the number of classes
 * @param control        NULL for none
 * @param labels         receives V×k integers (1×k for classification)
 * @param probabilities  receives V×k reals (1×k)
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_top(const eman_model *model, const eman_mesh *mesh, int32_t k,
                                    const eman_control *control, const eman_mutable_view *labels,
                                    const eman_mutable_view *probabilities) EMAN_CHECK_RESULT;

/**
 * The log-probabilities of all classes.
 *
 * @param model    the model
 * @param mesh     the mesh
 * @param control  NULL for none
 * @param logits   receives V×classes reals (1×classes for classification). A
 *                 packed FLOAT32 array is written in place: after a failure it
 *                 may hold part of the result.
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_logits(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                                       const eman_mutable_view *logits) EMAN_CHECK_RESULT;

/**
 * How many rows the features of a layer have on a mesh, and the attention of a
 * layer: V and E, or the points of a level of samples and their edges.
 *
 * @param model    the model
 * @param mesh     the mesh
 * @param layer    from 0
 * @param control  NULL for none
 * @param rows     receives the rows of eman_model_features
 * @param edges    receives the rows of eman_model_attention
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_layer_size(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                           const eman_control *control, int64_t *rows,
                                           int64_t *edges) EMAN_CHECK_RESULT;

/**
 * The edges that a layer runs on, as eman_mesh_neighbors gives those of a mesh:
 * row p hears indices[offsets[p]] … indices[offsets[p+1]−1]. Of samples these
 * number the points of the layer's own level or, for a layer between two levels,
 * of the other one.
 *
 * @param model    the model
 * @param mesh     the mesh
 * @param layer    from 0
 * @param control  NULL for none
 * @param offsets  receives (rows+1)×1 integers (eman_model_layer_size)
 * @param indices  receives edges×1 integers
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_layer_neighbors(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                                const eman_control *control, const eman_mutable_view *offsets,
                                                const eman_mutable_view *indices) EMAN_CHECK_RESULT;

/**
 * The samples of a mesh's surface that a network runs on: K, the rows of layer 0
 * (eman_model_layer_size). A coarser level has the first of them.
 *
 * @param model      the model, on a surface
 * @param mesh       the mesh
 * @param control    NULL for none
 * @param positions  receives K×3 reals, in the coordinates of the mesh
 * @param normals    receives K×3 reals, unit vectors
 * @return EMAN_E_INVALID_ARGUMENT if the network runs on vertices; else as
 *         eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_samples(const eman_model *model, const eman_mesh *mesh, const eman_control *control,
                                        const eman_mutable_view *positions,
                                        const eman_mutable_view *normals) EMAN_CHECK_RESULT;

/**
 * The attention coefficients α_pq = N_p·softmax of a layer (§6): those of a
 * vertex and head add up to its number of neighbours N_p. With self-contribution
 * (self_term, app. D.4) they are (N_p + 1)·softmax, and what is missing in the
 * sum is the coefficient of the vertex itself.
 *
 * @param model     the model
 * @param mesh      the mesh
 * @param layer     from 0; one with heads (eman_model_describe_layer)
 * @param control   NULL for none
 * @param attention receives E×heads reals, in the order of eman_mesh_neighbors;
 *                  edges×heads in that of eman_model_layer_neighbors
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_attention(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                          const eman_control *control,
                                          const eman_mutable_view *attention) EMAN_CHECK_RESULT;

/**
 * The features behind a layer, in the gauges of the mesh, or of the samples,
 * which are some.
 *
 * @param model     the model
 * @param mesh      the mesh
 * @param layer     from 0
 * @param control   NULL for none
 * @param features  receives V×(channels·(2·order+1)) reals, or so many rows as
 *                  eman_model_layer_size says: for each channel ρ0, then real
 *                  and imaginary part of ρ1, ρ2, …
 * @return as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_features(const eman_model *model, const eman_mesh *mesh, int32_t layer,
                                         const eman_control *control,
                                         const eman_mutable_view *features) EMAN_CHECK_RESULT;

/** How well a model labels a mesh. */
typedef struct eman_evaluation {
  uint32_t struct_size; /**< set by the caller */
  int32_t reserved;     /**< 0 */
  int64_t labels;       /**< known labels that were compared */
  int64_t correct;      /**< of these, the model's most probable class */
  double loss;          /**< the mean negative log-likelihood of the known labels; 0 without any */
} eman_evaluation;

/**
 * Compares a model's labels with known ones.
 *
 * @param model      the model
 * @param mesh       the mesh
 * @param labels     V×1 integers (1×1 for classification); −1 where unknown
 * @param control    NULL for none
 * @param result     its struct_size is set; receives the rest
 * @param confusion  NULL, or receives classes×classes integers, INT64: how many
 *                   vertices of class (row) were labelled as (column)
 * @return EMAN_E_INVALID_ARGUMENT naming the label; else as eman_model_predict
 * @since ABI 1
 */
EMAN_API eman_status eman_model_evaluate(const eman_model *model, const eman_mesh *mesh, const eman_view *labels,
                                         const eman_control *control, eman_evaluation *result,
                                         const eman_mutable_view *confusion) EMAN_CHECK_RESULT;

/* ------------------------------------------------------------------ training (§7, app. F) */

/**
 * A training: a network, what it learns from and how far it is.
 *
 * One call at a time: a call waits for a step of another thread to end.
 * eman_trainer_add_mesh, _run and _step are refused while _run or _step is in
 * progress. A progress function sees the training as it was before the step.
 */
typedef struct eman_trainer eman_trainer;

/** What one step, and the epoch that it ended, came to. */
typedef struct eman_step_info {
  uint32_t struct_size;       /**< set by the caller */
  int32_t epoch;              /**< from 1 on */
  int64_t step;               /**< from 1 on */
  int64_t steps;              /**< of the whole training */
  double loss;                /**< mean negative log-likelihood of the labels of the step's meshes */
  double accuracy;            /**< share of these labels that had the highest probability, in training (with dropout) */
  double gradient_norm;       /**< before clipping */
  double learning_rate;       /**< of the step */
  int32_t epoch_ended;        /**< 1 if the step was the last of its epoch */
  int32_t validated;          /**< 1 if the epoch ended and there are validation meshes */
  double epoch_loss;          /**< as loss, of the epoch that ended */
  double epoch_accuracy;      /**< as accuracy, of the epoch that ended */
  double validation_loss;     /**< on the validation meshes, if validated */
  double validation_accuracy; /**< on the validation meshes, if validated */
} eman_step_info;

/**
 * Called on the thread of eman_trainer_run after every step; non-zero ends the
 * run. It may call eman_trainer_save, _model and _state.
 */
typedef int32_t (*eman_step_function)(void *user, const eman_step_info *info);

/**
 * Begins a training of a copy of a model.
 *
 * The description is a JSON object; what it leaves out has the paper's values:
 * epochs (100), optimizer ("adam" or "adamw"), learning_rate (0.01), schedule
 * ("constant", "cosine", "one_cycle"), warm_up (steps), beta1, beta2, epsilon,
 * weight_decay, clip_norm (of the whole gradient; 0: none), meshes_per_step (1: how many meshes'
 * gradients are summed), shuffle (true), dropout (the model's), class_weights,
 * frozen (patterns of parameters' names, as in "blocks.0.*"), patience (epochs
 * without a better validation until the end; 0: all epochs), augment (an object
 * that changes each mesh before each step: rotation (false), by any; translation,
 * up to so many diagonals of its bounding box in each direction; scale s, by
 * 1/(1 + s) to 1 + s; stretch, likewise along three random axes; warp, by smooth
 * waves of so many diagonals; noise of every vertex, its deviation in units of
 * the mean edge at it; resample (false), other points of the surface, for
 * networks on samples), seed.
 *
 * @param context      the context whose threads and memory the training uses
 * @param model        the network to begin with
 * @param description  NUL-terminated JSON
 * @param trainer      receives the training
 * @return EMAN_E_INVALID_ARGUMENT naming the field
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_create(eman_context *context, const eman_model *model, const char *description,
                                         eman_trainer **trainer) EMAN_CHECK_RESULT;

/**
 * Reads a training that eman_trainer_save wrote. The same meshes and labels
 * must be added again, in the same order; it then goes on bit for bit.
 *
 * @param context  the context whose threads and memory the training uses
 * @param path     UTF-8, NUL-terminated
 * @param trainer  receives the training
 * @return EMAN_E_IO, or EMAN_E_INVALID_MODEL naming the tensor or field
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_load(eman_context *context, const char *path,
                                       eman_trainer **trainer) EMAN_CHECK_RESULT;

/** Frees a training. @since ABI 1 */
EMAN_API void eman_trainer_free(eman_trainer *trainer);

/**
 * Adds a mesh, as it is now, to learn from or to validate with, before the first
 * step. Its geometry is computed once and kept as long as the context's memory
 * suffices. A mesh without any label that counts is left out.
 *
 * @param trainer     the training
 * @param mesh        the mesh; it may be changed or freed afterwards
 * @param labels      V×1 integers (1×1 for classification): the class, or −1
 *                    where it is unknown
 * @param name        tells the mesh in errors; may be NULL
 * @param validation  0: to learn from; 1: to validate with after every epoch
 * @return EMAN_E_INVALID_ARGUMENT naming the label, or after the first step
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_add_mesh(eman_trainer *trainer, const eman_mesh *mesh, const eman_view *labels,
                                           const char *name, int32_t validation) EMAN_CHECK_RESULT;

/**
 * Trains until the end: all epochs, or the end of the patience. Whatever ends it
 * before, the training can go on from the last whole step. At the end it does
 * nothing and returns EMAN_OK.
 *
 * @param trainer  the training
 * @param control  NULL for none; progress is that of all steps
 * @param step     called after every step; NULL for none
 * @param user     passed to step
 * @return EMAN_E_CANCELLED, also if step ended it; EMAN_E_DIVERGED if features, a
 *         loss or a gradient are no finite numbers: the parameters are those
 *         before that step; EMAN_E_INVALID_ARGUMENT without any label, or with
 *         other labels than a training that was loaded began with; EMAN_E_NOMEM;
 *         EMAN_E_UNSUPPORTED if a mesh has more than 2^31 − 1 vertices times
 *         lift_neighbors
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_run(eman_trainer *trainer, const eman_control *control, eman_step_function step,
                                      void *user) EMAN_CHECK_RESULT;

/**
 * Makes one step and, after the last of an epoch, validates.
 *
 * @param trainer  the training
 * @param control  NULL for none; progress is that of the step
 * @param info     its struct_size is set; receives the rest
 * @return as eman_trainer_run; EMAN_E_INVALID_ARGUMENT after the last step
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_step(eman_trainer *trainer, const eman_control *control,
                                       eman_step_info *info) EMAN_CHECK_RESULT;

/**
 * About how many bytes a step takes on one mesh of a size: the network, its
 * gradient and moments, what is kept of the layers, and what they see of the
 * mesh. Meshes themselves are not counted, and of several, what the layers see of
 * each, which is kept as long as there is memory, only once.
 *
 * @param trainer   the training
 * @param vertices  V
 * @param edges     E, directed edges
 * @param bytes     receives the estimate
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_estimate(const eman_trainer *trainer, int64_t vertices, int64_t edges,
                                           int64_t *bytes) EMAN_CHECK_RESULT;

/**
 * About how much work a step is on one mesh of a size, as
 * eman_model_estimate_work: the layers forwards, backwards and to the weights,
 * and what they see of the mesh where the training deforms or samples it anew.
 *
 * @param trainer   the training
 * @param vertices  V
 * @param edges     E, directed edges
 * @param work      struct_size must be set; receives the rest
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_estimate_work(const eman_trainer *trainer, int64_t vertices, int64_t edges,
                                                eman_work *work) EMAN_CHECK_RESULT;

/**
 * How far a training is, as a JSON object: done, step, epoch (done), best (the
 * epoch of the best validation, from 0, or −1), history (epochs: epoch, loss,
 * accuracy, validation_loss, validation_accuracy) and training (its
 * description). It grows with every epoch: while another thread trains, ask until
 * it fits.
 *
 * @param trainer   the training
 * @param text      receives the NUL-terminated text; may be NULL if capacity is 0
 * @param capacity  bytes at text
 * @param length    receives the length without the NUL, even when text is too small
 * @return EMAN_E_BUFFER_TOO_SMALL if capacity ≤ the length
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_state(eman_trainer *trainer, char *text, int64_t capacity,
                                        int64_t *length) EMAN_CHECK_RESULT;

/**
 * A copy of the network.
 *
 * @param trainer  the training
 * @param best     0: as it is now; 1: of the best validation (the highest
 *                 accuracy, of equal ones the lowest loss), or as it is now
 *                 without one
 * @param model    receives the model
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_model(eman_trainer *trainer, int32_t best, eman_model **model) EMAN_CHECK_RESULT;

/**
 * Writes the state of a training to a file (safetensors), as eman_model_save
 * does; the meshes are not in it.
 *
 * @param trainer  the training
 * @param path     UTF-8, NUL-terminated
 * @return EMAN_E_IO
 * @since ABI 1
 */
EMAN_API eman_status eman_trainer_save(eman_trainer *trainer, const char *path) EMAN_CHECK_RESULT;

#ifdef __cplusplus
}
#endif

#endif
