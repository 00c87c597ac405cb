//! Calls by NVIDIA's libraries.

use super::Library;
use super::engine::Engine;
use crate::calls::{Call, Entry, Precision, Way};
use crate::driver::{Buffer, Gpu, Trouble};
use crate::{cublas, cudnn};

struct Product<'a> {
    library: &'a cublas::Cublas,
    plan: cublas::Plan,
}

struct Convolution<'a> {
    library: &'a cudnn::Cudnn,
    plan: cudnn::Plan,
}

impl Library for cublas::Cublas {
    fn version(&self) -> String {
        format!("version={} path={}", self.version, self.path())
    }

    fn plan<'a>(&'a self, _gpu: &Gpu, entry: &Entry) -> Result<Box<dyn Engine + 'a>, Trouble> {
        let Call::Product(product) = entry.call else { return Err(other()) };
        Ok(Box::new(Product { library: self, plan: self.plan(product)? }))
    }
}

impl Library for cudnn::Cudnn {
    fn version(&self) -> String {
        format!("version={} path={}", self.version, self.path())
    }

    fn plan<'a>(&'a self, gpu: &Gpu, entry: &Entry) -> Result<Box<dyn Engine + 'a>, Trouble> {
        let Call::Convolution(convolution) = entry.call else { return Err(other()) };
        Ok(Box::new(Convolution { library: self, plan: self.plan(gpu, convolution)? }))
    }
}

/// A call that is not the library's.
fn other() -> Trouble {
    Trouble::Absent("of another library".to_owned())
}

impl Engine for Product<'_> {
    fn version(&self) -> Option<String> {
        Some(self.library.engine())
    }

    fn whose(&self) -> &'static str {
        "cuBLAS"
    }

    fn tolerance(&self) -> f64 {
        if self.plan.product.precision == Precision::Fp16 { 1e-3 } else { 1e-5 }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn start(&self, _gpu: &Gpu, buffers: [&Buffer; 3], alpha: f32) -> Result<(), Trouble> {
        self.library.start(&self.plan, buffers, alpha)
    }
}

impl Engine for Convolution<'_> {
    fn version(&self) -> Option<String> {
        Some(self.library.engine())
    }

    fn whose(&self) -> &'static str {
        "cuDNN"
    }

    /// From sm_80 on its default math rounds floats to tf32.
    fn tolerance(&self) -> f64 {
        1e-3
    }

    /// The first algorithms of both ways back add in any order, as `cudnn.h` has it.
    fn repeats(&self) -> bool {
        let convolution = &self.plan.convolution;
        convolution.way == Way::Forward || convolution.algorithm != 0
    }

    fn start(&self, _gpu: &Gpu, buffers: [&Buffer; 3], _alpha: f32) -> Result<(), Trouble> {
        self.library.start(&self.plan, buffers)
    }
}
