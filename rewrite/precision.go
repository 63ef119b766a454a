package rewrite

import "fmt"

// The words of Options.Precision.
const (
	exactPrecision = "exact"
	fastPrecision  = "fast"
)

// checkPrecision refuses a precision that is none, or that the target does not have.
func (o Options) checkPrecision() error {
	switch o.Precision {
	case "":
		return nil
	case exactPrecision, fastPrecision:
	default:
		return fmt.Errorf("precision %q: exact or fast was expected", o.Precision)
	}
	switch o.Target.Name() {
	case PlainONNX:
		return fmt.Errorf("--precision %s is an attribute of the op, and --target onnx leaves none in the model: its own nodes round as their types do; leave --precision or --target out", o.Precision)
	case Contrib:
		return fmt.Errorf("--precision %s is an attribute of the op, and --target contrib leaves none in the model: GroupQueryAttention rounds as ONNX Runtime has it; leave --precision or --target out", o.Precision)
	}
	return nil
}

// precision is what sites get, "" for what they have.
func (o Options) precision() string {
	if o.Restore {
		return exactPrecision
	}
	return o.Precision
}
