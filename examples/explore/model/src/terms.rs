//! Expressions and stores in a form that is ready to be evaluated: each variable is resolved to the word and the bits of the
//! state that hold it, and a variable that nothing writes is a constant.

use crate::interpreter::{Fault, Wrong};
use crate::ir::expression::{Binary, Unary};
use crate::ir::ids::LabelId;
use crate::ir::net::{Firing, firing};
use crate::ir::{Assignment, Expression, Field, Model, Span, StoreTarget, Type, VariableId};

type Result<T> = std::result::Result<T, Box<Fault>>;

/// An expression over the states of one model.
#[derive(Clone, Debug)]
pub enum Term {
    Constant(i32),
    /// Value of a scalar.
    Read(Slot),
    /// 1 if the test holds, else 0. Stands for comparisons with constants and for tests of a location.
    Is(Test),
    Element(Box<Element>),
    /// 1 if the network has a rule with this label that can take a step, else 0.
    Enabled(LabelId),
    /// 1 if the transition of the net is enabled, else 0.
    Fires(Box<Firing>),
    Unary(Unary, Box<Term>),
    Binary(Box<Operation>),
    /// The second value if the first one is not 0, else the third.
    Conditional(Box<[Term; 3]>),
    /// An index of one dimension of an array of two.
    Within(Box<Within>),
}

/// Holds if the bits that `mask` selects in a word of the state equal `bits`.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    word: u32,
    mask: u32,
    bits: u32,
}

/// Position of a scalar in a state. Shifting its word left by `left`, then right by `right`, gives the value.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    word: u32,
    left: u8,
    right: u8,
    signed: bool,
}

#[derive(Clone, Debug)]
pub struct Operation {
    operator: Binary,
    left: Term,
    right: Term,
    span: Span,
}

#[derive(Clone, Debug)]
pub struct Element {
    array: VariableId,
    /// The array's place in the state; `None` if nothing writes it.
    field: Option<Field>,
    /// Initial values of the array's elements.
    values: Box<[i32]>,
    index: Term,
    span: Span,
}

#[derive(Clone, Debug)]
pub struct Within {
    array: VariableId,
    dimension: usize,
    elements: usize,
    index: Term,
    span: Span,
}

/// The target of a store.
#[derive(Clone, Debug)]
pub struct Target {
    variable: VariableId,
    field: Field,
    ty: Type,
    elements: usize,
    /// Index of the element of an array; `None` for a scalar.
    index: Option<Term>,
    span: Span,
}

/// An assignment.
#[derive(Clone, Debug)]
pub struct Store {
    pub target: Target,
    pub value: Term,
}

impl Slot {
    /// The slot of a scalar. `None` if the field has no bits, so that the value is 0.
    fn of(field: Field) -> Option<Self> {
        let ((word, shift), unused) = (field.position(0), 32u32.checked_sub(field.bits).filter(|unused| *unused < 32)?);
        Some(Self { word: word as u32, left: (unused - shift) as u8, right: unused as u8, signed: field.signed })
    }

    fn get(self, state: &[u32]) -> i32 {
        let top = state[self.word as usize] << self.left;
        if self.signed { (top as i32) >> self.right } else { (top >> self.right) as i32 }
    }
}

impl Term {
    pub fn of(expression: &Expression, model: &Model) -> Self {
        match expression {
            Expression::Constant(value) => Self::Constant(*value),
            Expression::Variable(variable) => match model.layout.variables[*variable] {
                Some(field) => Slot::of(field).map_or(Self::Constant(0), Self::Read),
                None => Self::Constant(model.variables[*variable].initial[0]),
            },
            Expression::Element { array, index, span } => {
                let (field, values) = (model.layout.variables[*array], model.variables[*array].initial.clone().into());
                let index = Self::of(index, model);
                Self::Element(Box::new(Element { array: *array, field, values, index, span: *span }))
            }
            Expression::At { process, location } => Self::is(model.layout.locations[*process], *location as i32),
            Expression::Enabled(label) => match &model.net {
                Some(net) => firing(net, &model.layout, *label).map_or(Self::Constant(0), |of| Self::Fires(Box::new(of))),
                None => Self::Enabled(*label),
            },
            Expression::Unary { operator, operand } => match Self::of(operand, model) {
                Self::Constant(value) => Self::Constant(operator.apply(value)),
                operand => Self::Unary(*operator, Box::new(operand)),
            },
            Expression::Binary { operator, operands, span } => {
                Self::binary(*operator, Self::of(&operands[0], model), Self::of(&operands[1], model), *span)
            }
            Expression::Conditional(parts) => match parts.each_ref().map(|part| Self::of(part, model)) {
                [Self::Constant(0), _, otherwise] => otherwise,
                [Self::Constant(_), then, _] => then,
                parts => Self::Conditional(Box::new(parts)),
            },
            Expression::Within { array, dimension, elements, index, span } => {
                let (array, dimension, elements, span) = (*array, *dimension, *elements, *span);
                Self::Within(Box::new(Within { array, dimension, elements, index: Self::of(index, model), span }))
            }
        }
    }

    /// The test that a field has a value.
    fn is(field: Field, value: i32) -> Self {
        let mut states = [[0], [0]];
        let (word, shift) = field.position(0);
        let field = Field { bit: shift, ..field };
        field.set(&mut states[0], 0, value);
        field.set(&mut states[1], 0, -1);
        if field.get(&states[0], 0) != value {
            return Self::Constant(0);
        }
        match states[1][0] {
            0 => Self::Constant(1),
            mask => Self::Is(Test { word: word as u32, mask, bits: states[0][0] }),
        }
    }

    fn binary(operator: Binary, left: Self, right: Self, span: Span) -> Self {
        let known = match (&left, &right) {
            (Self::Constant(left), Self::Constant(right)) => operator.apply(*left, *right),
            (Self::Constant(left), _) => operator.decided(*left),
            _ => None,
        };
        match (known, operator, &left, &right) {
            (Some(value), ..) => Self::Constant(value),
            (None, Binary::Equal, Self::Read(slot), Self::Constant(value)) => Self::is(slot.field(), *value),
            (None, Binary::Equal, Self::Constant(value), Self::Read(slot)) => Self::is(slot.field(), *value),
            (None, Binary::And, Self::Is(left), Self::Is(right)) if left.word == right.word => left.and(*right),
            _ => Self::Binary(Box::new(Operation { operator, left, right, span })),
        }
    }

    /// Returns the value in a state.
    ///
    /// # Errors
    ///
    /// A [`Fault`] whose `transition` is `None`.
    pub fn value(&self, model: &Model, state: &[u32]) -> Result<i32> {
        if let Some(value) = self.simple(state) {
            return Ok(value);
        }
        match self {
            Self::Unary(operator, operand) => Ok(operator.apply(operand.value(model, state)?)),
            Self::Binary(operation) => {
                let Operation { operator, left, right, span } = &**operation;
                // Most operands are simple. Testing for that here saves a call.
                let left = match left.simple(state) {
                    Some(left) => left,
                    None => left.value(model, state)?,
                };
                if let Some(value) = operator.decided(left) {
                    return Ok(value);
                }
                let right = match right.simple(state) {
                    Some(right) => right,
                    None => right.value(model, state)?,
                };
                operator
                    .apply(left, right)
                    .ok_or_else(|| Box::new(Fault { what: Wrong::DivisionByZero, span: *span, transition: None }))
            }
            Self::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                if condition.value(model, state)? != 0 { then.value(model, state) } else { otherwise.value(model, state) }
            }
            Self::Within(of) => {
                let Within { array, dimension, elements, index, span } = &**of;
                let index = index.value(model, state)?;
                place(*array, *dimension, *elements, index, *span).map(|_| index)
            }
            Self::Element(of) => {
                let Element { array, field, values, index, span } = &**of;
                let element = place(*array, 0, values.len(), index.value(model, state)?, *span)?;
                Ok(field.map_or_else(|| values[element], |field| field.get(state, element)))
            }
            Self::Fires(firing) => Ok(firing.is_enabled(state).into()),
            Self::Enabled(label) => {
                let network = model.network.as_ref();
                Ok(network.is_some_and(|network| network.is_enabled(*label, &model.layout, state)).into())
            }
            Self::Constant(_) | Self::Read(_) | Self::Is(_) => unreachable!("these are simple"),
        }
    }

    /// Returns the value if finding it takes no evaluation of another term.
    #[inline(always)]
    fn simple(&self, state: &[u32]) -> Option<i32> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Read(slot) => Some(slot.get(state)),
            Self::Is(test) => Some(test.holds(state).into()),
            _ => None,
        }
    }

    /// Returns the test that is evaluated first, if the expression is 0 whenever that test fails.
    pub fn first_test(&self) -> Option<Test> {
        match self {
            Self::Is(test) => Some(*test),
            Self::Binary(operation) if operation.operator == Binary::And => operation.left.first_test(),
            _ => None,
        }
    }
}

impl Test {
    #[inline(always)]
    pub fn holds(self, state: &[u32]) -> bool {
        state[self.word as usize] & self.mask == self.bits
    }

    /// Returns the term that holds if both tests hold. Both must test the same word.
    fn and(self, other: Self) -> Term {
        match (self.bits ^ other.bits) & self.mask & other.mask {
            0 => Term::Is(Self { mask: self.mask | other.mask, bits: self.bits | other.bits, ..self }),
            _ => Term::Constant(0),
        }
    }
}

impl Slot {
    fn field(self) -> Field {
        let bits = 32 - u32::from(self.right);
        Field { bit: self.word * 32 + u32::from(self.right) - u32::from(self.left), bits, signed: self.signed }
    }
}

impl Target {
    /// # Panics
    ///
    /// The variable has no field although something writes it.
    pub fn of(place: &StoreTarget, model: &Model) -> Self {
        let StoreTarget { variable, index, span } = place;
        let of = &model.variables[*variable];
        Self {
            variable: *variable,
            field: model.layout.variables[*variable].expect("a variable that is written has a field"),
            ty: of.ty,
            elements: of.initial.len(),
            index: index.as_ref().map(|index| Term::of(index, model)),
            span: *span,
        }
    }

    /// Evaluates the index, then the value, and stores the value. Returns 1 if the value did not fit, else 0.
    ///
    /// # Errors
    ///
    /// A [`Fault`] whose `transition` is `None`.
    pub fn store(&self, model: &Model, state: &mut [u32], value: impl FnOnce(&[u32]) -> Result<i32>) -> Result<u64> {
        let element = match &self.index {
            Some(index) => place(self.variable, 0, self.elements, index.value(model, state)?, self.span)?,
            None => 0,
        };
        let value = value(state)?;
        let stored = self.ty.wrap(value);
        self.field.set(state, element, stored);
        Ok(u64::from(stored != value))
    }
}

impl Store {
    pub fn of(assignment: &Assignment, model: &Model) -> Self {
        Self { target: Target::of(&assignment.target, model), value: Term::of(&assignment.value, model) }
    }
}

/// An index of a dimension of `elements` elements, or the fault that it is outside.
fn place(array: VariableId, dimension: usize, elements: usize, index: i32, span: Span) -> Result<usize> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index < elements)
        .ok_or_else(|| Box::new(Fault { what: Wrong::Index { array, dimension, index }, span, transition: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let text =
            "byte x; byte y; byte z; process P { state s; init s; trans s -> s { effect x = x + 1, y = y + 1, z = z + 1; }; }
            system async;";
        crate::dve::Dve::read(crate::ir::Source { name: "test".into(), text: text.into() }).unwrap().model
    }

    /// `name == value`.
    fn is(model: &Model, name: &str, value: i32) -> Term {
        let variable = model.variables.iter().position(|variable| variable.name == name).unwrap();
        Term::binary(Binary::Equal, Term::of(&Expression::Variable(variable), model), Term::Constant(value), Span::default())
    }

    fn and(left: Term, right: Term) -> Term {
        Term::binary(Binary::And, left, right, Span::default())
    }

    #[test]
    fn tests_of_a_word_become_one() {
        let model = model();
        let both = and(is(&model, "x", 3), is(&model, "y", 5));
        assert!(matches!(both, Term::Is(_)), "{both:?}");
        assert!(matches!(and(is(&model, "x", 3), is(&model, "x", 4)), Term::Constant(0)));
        assert!(matches!(and(is(&model, "x", 3), is(&model, "x", 3)), Term::Is(_)));
        let state = |x, y| {
            let mut state = model.initial_state();
            for (name, value) in [("x", x), ("y", y), ("z", 255)] {
                let variable = model.variables.iter().position(|variable| variable.name == name).unwrap();
                model.layout.variables[variable].unwrap().set(&mut state, 0, value);
            }
            state
        };
        for (x, y) in [(3, 5), (3, 4), (2, 5), (0, 0), (255, 255)] {
            assert_eq!(both.value(&model, &state(x, y)).unwrap(), i32::from((x, y) == (3, 5)), "x = {x}, y = {y}");
        }
    }

    /// The first test may be evaluated alone only if a state in which it fails neither enables the expression nor faults.
    #[test]
    fn the_first_test_is_what_would_end_the_evaluation() {
        let model = model();
        let one_over_x = || {
            let x = Term::of(&Expression::Variable(model.variables.iter().position(|of| of.name == "x").unwrap()), &model);
            Term::binary(Binary::Divide, Term::Constant(1), x, Span::default())
        };
        let state = model.initial_state();
        let guard = and(and(is(&model, "y", 1), one_over_x()), is(&model, "z", 1));
        assert!(!guard.first_test().unwrap().holds(&state));
        assert_eq!(guard.value(&model, &state).unwrap(), 0);
        // The division is evaluated first here, and its fault must be found.
        let faulty = and(one_over_x(), is(&model, "y", 1));
        assert!(faulty.first_test().is_none());
        assert!(faulty.value(&model, &state).is_err());
        let either = Term::binary(Binary::Or, is(&model, "y", 1), is(&model, "z", 0), Span::default());
        assert!(either.first_test().is_none());
    }
}
