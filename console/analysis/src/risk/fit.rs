//! Which model, fitted how? One name, one fit and one saved form for all of them.

use serde::{Deserialize, Serialize};

use super::{
    Cox, CoxTime, CoxTimeSettings, Curves, Exponential, Grouped, Grouping, KaplanMeier, Survival, Table, Ties, Weibull,
};

/// Why a model could not be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Nothing to learn a rate from.
    #[error("there is no event to learn from")]
    NoEvents,
    /// No time was watched.
    #[error("no time was watched")]
    NoTime,
    /// No feature at all.
    #[error("the rows have no features")]
    NoFeatures,
    /// The model groups by a feature the table lacks.
    #[error("there is no feature {0:?} to group by")]
    NoColumn(String),
    /// Training and held-out rows differ in their features.
    #[error("training and held-out rows have different features")]
    Columns,
    /// Newton's method found no better point.
    #[error("the likelihood has no maximum here; are features copies of each other?")]
    Diverged,
}

impl FitError {
    /// What every fit needs.
    pub(super) fn check(table: &Table) -> Result<(), Self> {
        if table.width() == 0 {
            return Err(Self::NoFeatures);
        }
        if table.events() == 0 {
            return Err(Self::NoEvents);
        }
        if table.duration().iter().sum::<f64>() > 0.0 { Ok(()) } else { Err(Self::NoTime) }
    }
}

/// The models, from the simplest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One constant rate.
    Exponential,
    /// A constant rate per number of past incidents.
    ExponentialPerCount,
    /// A constant rate per ten days in service.
    ExponentialPerHour,
    /// Product-limit curve of all nodes.
    KaplanMeier,
    /// A hazard that is a power of time.
    Weibull,
    /// Linear proportional hazards.
    Cox,
    /// The survival network.
    CoxTime,
}

impl Kind {
    /// All kinds, the simplest first.
    pub const ALL: [Self; 7] = [
        Self::Exponential,
        Self::ExponentialPerCount,
        Self::ExponentialPerHour,
        Self::KaplanMeier,
        Self::Weibull,
        Self::Cox,
        Self::CoxTime,
    ];

    /// Name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::ExponentialPerCount => "exponential_per_count",
            Self::ExponentialPerHour => "exponential_per_hour",
            Self::KaplanMeier => "kaplan_meier",
            Self::Weibull => "weibull",
            Self::Cox => "cox",
            Self::CoxTime => "cox_time",
        }
    }

    /// Kind of that name; case, `-` and `_` do not count.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
        Self::ALL.into_iter().find(|k| plain(k.name()) == plain(name))
    }
}

/// How models are fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Penalty of the linear Cox model, see [`Cox::fit`].
    pub ridge: f64,
    /// Training of the network.
    pub cox_time: CoxTimeSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ridge: 1e-4, cox_time: CoxTimeSettings::default() }
    }
}

/// A fitted model of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fitted {
    /// See [`Kind::Exponential`].
    Exponential(Exponential),
    /// See [`Kind::ExponentialPerCount`].
    ExponentialPerCount(Grouped),
    /// See [`Kind::ExponentialPerHour`].
    ExponentialPerHour(Grouped),
    /// See [`Kind::KaplanMeier`].
    KaplanMeier(KaplanMeier),
    /// See [`Kind::Weibull`].
    Weibull(Weibull),
    /// See [`Kind::Cox`].
    Cox(Cox),
    /// See [`Kind::CoxTime`].
    CoxTime(Box<CoxTime>),
}

/// Fits `kind`. The network learns from `train` and stops by `held_out`; the others, which need no stopping rule,
/// learn from both.
///
/// # Errors
/// As the model's own fit.
pub fn fit(kind: Kind, train: &Table, held_out: &Table, settings: &Settings) -> Result<Fitted, FitError> {
    if kind == Kind::CoxTime {
        return CoxTime::fit(train, held_out, &settings.cox_time).map(|m| Fitted::CoxTime(Box::new(m)));
    }
    let both = train.joined(held_out).ok_or(FitError::Columns)?;
    Ok(match kind {
        Kind::Exponential => Fitted::Exponential(Exponential::fit(&both)?),
        Kind::ExponentialPerCount => Fitted::ExponentialPerCount(Grouped::fit(&both, &Grouping::by_count())?),
        Kind::ExponentialPerHour => Fitted::ExponentialPerHour(Grouped::fit(&both, &Grouping::by_hour())?),
        Kind::KaplanMeier => Fitted::KaplanMeier(KaplanMeier::fit(&both)?),
        Kind::Weibull => Fitted::Weibull(Weibull::fit(&both)?),
        Kind::Cox | Kind::CoxTime => Fitted::Cox(Cox::fit(&both, settings.ridge, Ties::Efron)?),
    })
}

impl Fitted {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Exponential(_) => Kind::Exponential,
            Self::ExponentialPerCount(_) => Kind::ExponentialPerCount,
            Self::ExponentialPerHour(_) => Kind::ExponentialPerHour,
            Self::KaplanMeier(_) => Kind::KaplanMeier,
            Self::Weibull(_) => Kind::Weibull,
            Self::Cox(_) => Kind::Cox,
            Self::CoxTime(_) => Kind::CoxTime,
        }
    }

    fn inner(&self) -> &dyn Survival {
        match self {
            Self::Exponential(m) => m,
            Self::ExponentialPerCount(m) | Self::ExponentialPerHour(m) => m,
            Self::KaplanMeier(m) => m,
            Self::Weibull(m) => m,
            Self::Cox(m) => m,
            Self::CoxTime(m) => m.as_ref(),
        }
    }
}

impl Survival for Fitted {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        self.inner().survive(rows, times)
    }

    fn width(&self) -> usize {
        self.inner().width()
    }
}
