package main

// #include "shim.h"
import "C"

import (
	"unsafe"

	"libeman/geometry"
)

//export emango_mesh_examine
func emango_mesh_examine(mesh *C.eman_mesh, control *C.eman_control, report **C.eman_report, message *C.emango_error) C.eman_status {
	return onMesh(mesh, message, func(m meshObject) error {
		watch, err := newControl(control)
		if err != nil {
			return err
		}
		r, err := m.Examine(watch)
		if err != nil {
			return err
		}
		handle, err := newBox(kindReport, r)
		if err != nil {
			r.Close()
			return err
		}
		publish(unsafe.Pointer(report), handle, kindReport, (*geometry.Report).Close)
		return nil
	})
}

//export emango_report_free
func emango_report_free(report *C.eman_report) {
	closeBox(unsafe.Pointer(report), kindReport, (*geometry.Report).Close)
}

func onReport(report *C.eman_report, message *C.emango_error, body func(r *geometry.Report) error) C.eman_status {
	return guard(message, func() error {
		r, err := open[*geometry.Report](unsafe.Pointer(report), kindReport)
		if err != nil {
			return err
		}
		return body(r)
	})
}

//export emango_report_summarize
func emango_report_summarize(report *C.eman_report, summary *C.eman_report_summary, message *C.emango_error) C.eman_status {
	return onReport(report, message, func(r *geometry.Report) error {
		return writeStruct("summary", summary, &C.eman_report_summary{
			closed:               flag(r.Closed),
			manifold:             flag(r.Manifold),
			oriented:             flag(r.Oriented),
			vertex_count:         C.int64_t(r.VertexCount),
			face_count:           C.int64_t(r.FaceCount),
			edge_count:           C.int64_t(r.EdgeCount),
			component_count:      C.int64_t(r.ComponentCount),
			euler_characteristic: C.int64_t(r.EulerCharacteristic),
			min_degree:           C.int64_t(r.MinDegree),
			max_degree:           C.int64_t(r.MaxDegree),
			area:                 C.double(r.Area),
			min_length:           C.double(r.MinLength),
			mean_length:          C.double(r.MeanLength),
			max_length:           C.double(r.MaxLength),
		})
	})
}

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

func checkFinding(finding C.eman_finding) error {
	if finding < 0 || int(finding) >= geometry.FindingCount {
		return invalidArgument("finding is %d, not in [0, %d)", finding, geometry.FindingCount)
	}
	return nil
}

//export emango_report_count
func emango_report_count(report *C.eman_report, finding C.eman_finding, count *C.int64_t, width *C.int32_t, message *C.emango_error) C.eman_status {
	return onReport(report, message, func(r *geometry.Report) error {
		if err := checkFinding(finding); err != nil {
			return err
		}
		*count = C.int64_t(r.Count(geometry.Finding(finding)))
		*width = C.int32_t(geometry.Finding(finding).Width())
		return nil
	})
}

//export emango_report_indices
func emango_report_indices(report *C.eman_report, finding C.eman_finding, out *C.eman_mutable_view, message *C.emango_error) C.eman_status {
	return onReport(report, message, func(r *geometry.Report) error {
		if err := checkFinding(finding); err != nil {
			return err
		}
		f := geometry.Finding(finding)
		return writeIntegers("indices", out, f.Width(), r.Indices(f))
	})
}
