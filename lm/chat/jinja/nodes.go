package jinja

// expression is a node of an expression; eval.go has what each gives.
type expression interface{ eval(f *frame) any }

type (
	constant  struct{ value any }
	name      struct{ name string }
	attribute struct {
		of   expression
		name string
	}
	item struct{ of, key expression }
	// part is x[from:to:step]; what is missing is nil.
	part struct{ of, from, to, step expression }
	list struct {
		items []expression
		tuple bool
	}
	dictionary struct{ keys, values []expression }
	unary      struct {
		operator string // "-", "+", "not"
		of       expression
	}
	binary struct {
		operator    string
		left, right expression
	}
	concatenation struct{ parts []expression }
	// comparison is a chain, as a < b < c.
	comparison struct {
		first     expression
		operators []string
		others    []expression
	}
	// choice is "yes if test else no"; no may be nil.
	choice    struct{ test, yes, no expression }
	arguments struct {
		values   []expression
		names    []string
		keywords []expression
		spread   expression // behind **; may be nil
	}
	call struct {
		of   expression
		with arguments
	}
	filter struct {
		of   expression // nil in a filter of a block
		name string
		with arguments
	}
	test struct {
		of   expression
		name string
		with arguments
	}
)

// statement is a node between texts; exec.go has what each does.
type statement interface{ exec(f *frame) signal }

// target is what is assigned to: a name, an attribute of a namespace, or several.
type target struct {
	name, attribute string
	several         []target
	tuple           bool
}

type (
	text   struct{ text string }
	output struct {
		line int
		of   expression
	}
	branch struct {
		line int
		test expression
		body *block
	}
	conditional struct {
		branches  []branch
		otherwise *block // may be nil
	}
	loop struct {
		line            int
		to              target
		over            expression
		test            expression // may be nil
		body, otherwise *block
		recursive       bool
	}
	jump struct{ signal signal }
	set  struct {
		line int
		to   target
		of   expression
	}
	setBlock struct {
		line    int
		to      target
		filters *filter // may be nil
		body    *block
	}
	filterBlock struct {
		line    int
		filters *filter
		body    *block
	}
	with struct {
		line   int
		to     []target
		values []expression
		body   *block
	}
	generation struct{ body *block }
	define     struct {
		line  int
		macro *macro
	}
	callBlock struct {
		line int
		call *call
		body *macro
	}
)

// macro is a macro as it is defined, or the body of a call block.
type macro struct {
	name       string
	parameters []string
	defaults   []expression // of the last parameters
	body       *block
	// What its body reads beside its parameters decides what it takes.
	readsCaller, readsVarargs, readsKwargs bool
}

// block is a body: statements, and the names that are undefined from its begin on
// although an outer variable of the name may exist (scope.go).
type block struct {
	statements []statement
	hidden     []string
}
