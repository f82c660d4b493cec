/* The sizes and values that programs compiled against eman.h rely on. Compiled
 * as C99, C11, C++11 and C++17; nothing is run. */
#include <eman.h>

#include <stddef.h>

#define SAME(name, a, b) typedef char name[(a) == (b) ? 1 : -1]

SAME(view_size, sizeof(eman_view), 48);
SAME(view_dtype, offsetof(eman_view, dtype), 40);
SAME(mutable_view_size, sizeof(eman_mutable_view), 48);
SAME(context_options_size, sizeof(eman_context_options), 40);
SAME(context_options_log, offsetof(eman_context_options, log), 24);
SAME(context_info_size, sizeof(eman_context_info), 40);
SAME(control_size, sizeof(eman_control), 32);
SAME(control_progress, offsetof(eman_control, progress), 16);
SAME(mesh_options_size, sizeof(eman_mesh_options), 32);
SAME(mesh_options_frames, offsetof(eman_mesh_options, frames), 24);
SAME(reltan_options_size, sizeof(eman_reltan_options), 24);
SAME(summary_size, sizeof(eman_report_summary), 104);
SAME(summary_area, offsetof(eman_report_summary, area), 72);
SAME(tensor_size, sizeof(eman_tensor), 32);
SAME(tensor_rank, offsetof(eman_tensor, rank), 24);
SAME(parameter_size, sizeof(eman_parameter_info), 176);
SAME(parameter_name, offsetof(eman_parameter_info, name), 48);
SAME(layer_size, sizeof(eman_layer_info), 80);
SAME(layer_name, offsetof(eman_layer_info, name), 16);
SAME(work_size, sizeof(eman_work), 24);
SAME(work_seconds, offsetof(eman_work, seconds), 16);
SAME(evaluation_size, sizeof(eman_evaluation), 32);
SAME(evaluation_loss, offsetof(eman_evaluation, loss), 24);
SAME(step_size, sizeof(eman_step_info), 96);
SAME(step_loss, offsetof(eman_step_info, loss), 24);
SAME(step_validation, offsetof(eman_step_info, validation_accuracy), 88);

SAME(status_invalid_argument, EMAN_E_INVALID_ARGUMENT, -100);
SAME(status_buffer, EMAN_E_BUFFER_TOO_SMALL, -101);
SAME(status_version, EMAN_E_VERSION, -102);
SAME(status_unsupported, EMAN_E_UNSUPPORTED, -103);
SAME(status_mesh, EMAN_E_INVALID_MESH, -200);
SAME(status_model, EMAN_E_INVALID_MODEL, -201);
SAME(status_diverged, EMAN_E_DIVERGED, -202);
SAME(status_nomem, EMAN_E_NOMEM, -300);
SAME(status_io, EMAN_E_IO, -301);
SAME(status_cancelled, EMAN_E_CANCELLED, -400);
SAME(status_forked, EMAN_E_FORKED, -401);
SAME(status_internal, EMAN_E_INTERNAL, -500);

int main(void) { return 0; }
