//! Features and labels of a mesh in Rust, through the C interface alone: no crate,
//! the header's declarations by hand, and a small safe layer over them.
//!
//!     rustc --edition 2021 features.rs -l eman -L native=/usr/local/lib && ./features model.safetensors
//!
//! Prints what features.c prints, the error of a broken mesh, and the labels.

use std::env;
use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::process::ExitCode;
use std::ptr::{self, NonNull};

/// The part of eman.h that is needed here.
#[allow(non_camel_case_types)]
mod c {
    use super::{c_char, c_void};

    pub const OK: i32 = 0;
    pub const FLOAT64: i32 = 2;
    pub const INT32: i32 = 3;

    /// eman_view and eman_mutable_view, which differ in the constness of data.
    #[repr(C)]
    pub struct view<Data> {
        pub data: Data,
        pub rows: i64,
        pub columns: i64,
        pub row_stride: i64,
        pub column_stride: i64,
        pub dtype: i32,
        pub reserved: i32,
    }
    pub type input = view<*const c_void>;
    pub type output = view<*mut c_void>;

    /// Handles: what they point to is the library's.
    pub enum context {}
    pub enum mesh {}
    pub enum model {}

    extern "C" {
        pub fn eman_version_string() -> *const c_char;
        pub fn eman_status_name(status: i32) -> *const c_char;
        pub fn eman_last_error() -> *const c_char;
        pub fn eman_context_create(options: *const c_void, context: *mut *mut context) -> i32;
        pub fn eman_context_free(context: *mut context);
        pub fn eman_mesh_create(
            context: *mut context,
            positions: *const input,
            faces: *const input,
            options: *const c_void,
            control: *const c_void,
            mesh: *mut *mut mesh,
        ) -> i32;
        pub fn eman_mesh_free(mesh: *mut mesh);
        pub fn eman_mesh_counts(mesh: *const mesh, vertices: *mut i64, faces: *mut i64, edges: *mut i64) -> i32;
        pub fn eman_mesh_transform(
            mesh: *const mesh,
            rotation: *const f64,
            translation: *const f64,
            scale: f64,
            control: *const c_void,
            moved: *mut *mut mesh,
        ) -> i32;
        pub fn eman_mesh_reltan(
            mesh: *const mesh,
            powers: *const f64,
            count: i32,
            options: *const c_void,
            control: *const c_void,
            features: *const output,
        ) -> i32;
        pub fn eman_random_rotation(seed: u64, rotation: *mut f64) -> i32;
        pub fn eman_model_load(context: *mut context, path: *const c_char, model: *mut *mut model) -> i32;
        pub fn eman_model_free(model: *mut model);
        pub fn eman_model_predict(
            model: *const model,
            mesh: *const mesh,
            control: *const c_void,
            labels: *const output,
        ) -> i32;
    }
}

/// A failed call: its status and the library's message.
#[derive(Debug)]
struct Error {
    status: i32,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", text(unsafe { c::eman_status_name(self.status) }), self.message)
    }
}

impl std::error::Error for Error {}

type Result<T> = std::result::Result<T, Error>;

/// A copy of a text of the library's.
fn text(p: *const c_char) -> String {
    unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
}

fn check(status: i32) -> Result<()> {
    if status == c::OK {
        return Ok(());
    }
    Err(Error { status, message: text(unsafe { c::eman_last_error() }) })
}

/// An object of the library's, returned to it when it is dropped.
struct Owned<T> {
    handle: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// What `make` writes to the pointer that it is given.
    fn new(free: unsafe extern "C" fn(*mut T), make: impl FnOnce(*mut *mut T) -> i32) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check(make(&mut raw))?;
        let handle = NonNull::new(raw).expect("a call that succeeds gives a handle");
        Ok(Owned { handle, free })
    }

    fn get(&self) -> *mut T {
        self.handle.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        unsafe { (self.free)(self.get()) }
    }
}

// Objects may be used from any thread, by many at once (eman.h, Threads).
unsafe impl<T> Send for Owned<T> {}
unsafe impl<T> Sync for Owned<T> {}

/// Packed rows that the library reads.
fn input<T, const COLUMNS: usize>(rows: &[[T; COLUMNS]], dtype: i32) -> c::input {
    let (data, rows) = (rows.as_ptr().cast(), rows.len() as i64);
    c::view { data, rows, columns: COLUMNS as i64, row_stride: 0, column_stride: 0, dtype, reserved: 0 }
}

/// Packed rows that the library writes.
fn output<T, const COLUMNS: usize>(rows: &mut [[T; COLUMNS]], dtype: i32) -> c::output {
    let (data, rows) = (rows.as_mut_ptr().cast(), rows.len() as i64);
    c::view { data, rows, columns: COLUMNS as i64, row_stride: 0, column_stride: 0, dtype, reserved: 0 }
}

struct Context(Owned<c::context>);
struct Mesh(Owned<c::mesh>);
struct Model(Owned<c::model>);

impl Context {
    fn new() -> Result<Self> {
        Owned::new(c::eman_context_free, |raw| unsafe { c::eman_context_create(ptr::null(), raw) }).map(Context)
    }
}

impl Mesh {
    fn new(context: &Context, positions: &[[f64; 3]], faces: &[[i32; 3]]) -> Result<Self> {
        let (positions, faces) = (input(positions, c::FLOAT64), input(faces, c::INT32));
        Owned::new(c::eman_mesh_free, |raw| unsafe {
            c::eman_mesh_create(context.0.get(), &positions, &faces, ptr::null(), ptr::null(), raw)
        })
        .map(Mesh)
    }

    fn vertex_count(&self) -> Result<usize> {
        let (mut vertices, mut faces, mut edges) = (0, 0, 0);
        check(unsafe { c::eman_mesh_counts(self.0.get(), &mut vertices, &mut faces, &mut edges) })?;
        Ok(vertices as usize)
    }

    /// Moved by x ↦ scale·R·x + translation, R row by row.
    fn transform(&self, rotation: &[f64; 9], translation: &[f64; 3], scale: f64) -> Result<Self> {
        let (r, t) = (rotation.as_ptr(), translation.as_ptr());
        Owned::new(c::eman_mesh_free, |raw| unsafe {
            c::eman_mesh_transform(self.0.get(), r, t, scale, ptr::null(), raw)
        })
        .map(Mesh)
    }

    /// RelTan features of two relative powers: two coordinates of each, for every vertex.
    fn reltan(&self, powers: [f64; 2]) -> Result<Vec<[f64; 4]>> {
        let mut features = vec![[0.0; 4]; self.vertex_count()?];
        let (out, count) = (output(&mut features, c::FLOAT64), powers.len() as i32);
        let (none, powers) = (ptr::null(), powers.as_ptr());
        check(unsafe { c::eman_mesh_reltan(self.0.get(), powers, count, none, none, &out) })?;
        Ok(features)
    }
}

impl Model {
    fn load(context: &Context, path: &str) -> Result<Self> {
        let path = CString::new(path).expect("a path has no NUL");
        Owned::new(c::eman_model_free, |raw| unsafe { c::eman_model_load(context.0.get(), path.as_ptr(), raw) })
            .map(Model)
    }

    /// The label of each vertex.
    fn predict(&self, mesh: &Mesh) -> Result<Vec<[i32; 1]>> {
        let mut labels = vec![[0]; mesh.vertex_count()?];
        let out = output(&mut labels, c::INT32);
        check(unsafe { c::eman_model_predict(self.0.get(), mesh.0.get(), ptr::null(), &out) })?;
        Ok(labels)
    }
}

const PHI: f64 = 1.618_033_988_749_894_9;

/// The icosahedron of features.c, one vertex pulled out.
const POSITIONS: [[f64; 3]; 12] = [
    [-1.0, PHI, 0.0],
    [1.0, PHI, 0.0],
    [-1.0, -PHI, 0.0],
    [1.0, -PHI, 0.0],
    [0.0, -1.0, PHI],
    [0.0, 1.0, PHI],
    [0.0, -1.0, -PHI],
    [0.0, 1.0, -PHI],
    [PHI, 0.0, -1.0],
    [2.0, 0.2, 1.5],
    [-PHI, 0.0, -1.0],
    [-PHI, 0.0, 1.0],
];
#[rustfmt::skip]
const FACES: [[i32; 3]; 20] = [
    [0, 11, 5], [0, 5, 1], [0, 1, 7], [0, 7, 10], [0, 10, 11], [1, 5, 9], [5, 11, 4],
    [11, 10, 2], [10, 7, 6], [7, 1, 8], [3, 9, 4], [3, 4, 2], [3, 2, 6], [3, 6, 8],
    [3, 8, 9], [4, 9, 5], [2, 4, 11], [6, 2, 10], [8, 6, 7], [9, 8, 1],
];

fn run(path: &str) -> Result<bool> {
    let context = Context::new()?;
    let mesh = Mesh::new(&context, &POSITIONS, &FACES)?;
    let mut rotation = [0.0; 9];
    check(unsafe { c::eman_random_rotation(1, rotation.as_mut_ptr()) })?;
    let moved = mesh.transform(&rotation, &[10.0, -20.0, 30.0], 3.5)?;

    let (features, again) = (mesh.reltan([0.5, 0.7])?, moved.reltan([0.5, 0.7])?);
    let largest = features.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
    let pairs = features.iter().flatten().zip(again.iter().flatten());
    let difference = pairs.fold(0.0, |m: f64, (x, y)| m.max((x - y).abs()));
    let version = text(unsafe { c::eman_version_string() });
    println!("libeman {version}: largest feature {largest:.3}, difference after a similarity {difference:.1e}");

    let mut broken = FACES;
    broken[7][1] = 12;
    let error = Mesh::new(&context, &POSITIONS, &broken).err();
    println!("{}", error.as_ref().map_or_else(|| "no error".into(), Error::to_string));

    // One model may serve many threads.
    let model = Model::load(&context, path)?;
    let labels = model.predict(&mesh)?;
    let agree = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| model.predict(&mesh))).collect();
        threads.into_iter().all(|t| matches!(t.join(), Ok(Ok(found)) if found == labels))
    });
    println!("{}", labels.iter().map(|[label]| label.to_string()).collect::<Vec<_>>().join(" "));
    Ok(largest > 0.01 && difference < 1e-12 && error.is_some() && agree)
}

fn main() -> ExitCode {
    let path = match env::args().nth(1) {
        Some(path) => path,
        None => {
            eprintln!("usage: features model.safetensors");
            return ExitCode::from(2);
        }
    };
    match run(&path) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
