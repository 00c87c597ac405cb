//! How long single calls of linear algebra and of convolution take: by muster's own kernels, and by NVIDIA's library where it
//! is installed.
//!
//! Calls follow each other without waiting, as in SuperBench, so a call that is shorter than its launch counts as the launch.

mod engine;
mod own;
mod trial;
mod vendor;

use super::run::Run;
use crate::calls::{Entry, convolutions, products};
use crate::cublas::Cublas;
use crate::cudnn::Cudnn;
use crate::driver::{Gpu, Trouble};
use engine::Engine;
use own::Own;
use trial::Trial;

/// A library that does calls; what it cannot do on this GPU is [`Trouble::Absent`].
trait Library {
    fn version(&self) -> String;
    fn plan<'a>(&'a self, gpu: &Gpu, entry: &Entry) -> Result<Box<dyn Engine + 'a>, Trouble>;
}

/// Products, beside cuBLAS.
pub(super) fn cublas(run: &mut Run<'_>) -> Result<(), Trouble> {
    let library = Cublas::load(run.gpu);
    all(run, "cublas", products(small(run)), library)
}

/// Convolutions, beside cuDNN.
pub(super) fn cudnn(run: &mut Run<'_>) -> Result<(), Trouble> {
    let library = Cudnn::load(run.gpu);
    all(run, "cudnn", convolutions(small(run)), library)
}

fn small(run: &Run<'_>) -> bool {
    run.pick([true, false, false, false])
}

/// Every entry by our kernels and, as long as nothing is wrong with it, by the library.
fn all<L: Library>(
    run: &mut Run<'_>,
    key: &str,
    entries: &[Entry],
    library: Result<L, Trouble>,
) -> Result<(), Trouble> {
    match &library {
        Ok(library) => run.fact(key, library.version()),
        Err(Trouble::Absent(why)) => run.fact(key, why.clone()),
        Err(_) => {}
    }
    let (mut library, mut broken) = match library {
        Ok(library) => (Some(library), None),
        // Without the library our own kernels are measured all the same.
        Err(Trouble::Absent(_)) => (None, None),
        Err(trouble) => (None, Some(trouble)),
    };
    for (number, entry) in entries.iter().enumerate() {
        let gpu = run.gpu;
        let trial = Trial::new(gpu, entry)?;
        let own = trial.measure(run, (2 * number, 2 * entries.len()), &Own::new(gpu, entry.call)?, None)?;
        let Some(loaded) = &library else { continue };
        let part = (2 * number + 1, 2 * entries.len());
        let planned = loaded.plan(gpu, entry).map_err(|trouble| trouble.about(entry.name));
        match planned.and_then(|engine| trial.measure(run, part, engine.as_ref(), Some(&own))) {
            Ok(_) => {}
            // It can do others.
            Err(Trouble::Absent(_)) => run.fact(&format!("{key}.{}", entry.name), "not supported".to_owned()),
            Err(trouble) => (library, broken) = (None, Some(trouble)),
        }
    }
    broken.map_or(Ok(()), Err)
}
