package jinja

import (
	"math"
	"math/bits"
	"strings"
)

func negate(operator string, v any) any {
	f, i, integer, ok := number(v)
	switch {
	case !ok:
		failf("%s of a %s is not possible", operator, typeName(v))
	case operator == "+" && integer:
		return i
	case operator == "+":
		return f
	case integer:
		if i == math.MinInt64 {
			tooLarge()
		}
		return -i
	}
	return -f
}

func tooLarge() { failf("a number beyond 64 bits is not supported") }

// arithmetic is Python's for + - * / // % **.
func (m *machine) arithmetic(operator string, a, b any) any {
	fa, ia, intA, okA := number(a)
	fb, ib, intB, okB := number(b)
	switch {
	case okA && okB && intA && intB:
		return integers(operator, ia, ib)
	case okA && okB:
		return floats(operator, fa, fb)
	case operator == "+":
		return m.join(a, b)
	case operator == "*" && okA && intA:
		return m.repeat(b, ia)
	case operator == "*" && okB && intB:
		return m.repeat(a, ib)
	case operator == "%" && is[string](a):
		if values, ok := b.(tuple); ok {
			return m.percent(a.(string), values)
		}
		return m.percent(a.(string), []any{b})
	}
	failf("%s of a %s and a %s is not possible", operator, typeName(a), typeName(b))
	return nil
}

// join is + of texts, lists or tuples.
func (m *machine) join(a, b any) any {
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			m.spend((len(x) + len(y)) / 16)
			return x + y
		case markup:
			return m.joinSafe(escaped(x), y)
		}
	case markup:
		switch y := b.(type) {
		case string:
			return m.joinSafe(x, escaped(y))
		case markup:
			return m.joinSafe(x, y)
		}
	case List:
		if y, ok := b.(List); ok {
			m.spend(len(x) + len(y))
			return append(append(make(List, 0, len(x)+len(y)), x...), y...)
		}
	case tuple:
		if y, ok := b.(tuple); ok {
			m.spend(len(x) + len(y))
			return append(append(make(tuple, 0, len(x)+len(y)), x...), y...)
		}
	}
	failf("+ of a %s and a %s is not possible", typeName(a), typeName(b))
	return nil
}

func (m *machine) joinSafe(a, b markup) markup { return markup(m.made(string(a + b))) }

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escaped is a text that + joins with one marked as safe: Python escapes it for
// HTML, even where a template is for no HTML.
func escaped(s string) markup { return markup(htmlEscapes.Replace(s)) }

func (m *machine) repeat(v any, n int64) any {
	n = max(n, 0)
	length := func(l int) int {
		high, low := bits.Mul64(uint64(l), uint64(n))
		if high > 0 || low > 16*MaxSteps {
			m.spend(MaxSteps + 1)
		}
		return int(low)
	}
	switch v := v.(type) {
	case string:
		m.spend(length(len(v)) / 16)
		if v == "" {
			return ""
		}
		return strings.Repeat(v, int(n))
	case List:
		return List(m.repeated(v, length(len(v))))
	case tuple:
		return tuple(m.repeated(v, length(len(v))))
	}
	failf("* of a %s and a number is not possible", typeName(v))
	return nil
}

func (m *machine) repeated(items []any, n int) []any {
	m.spend(n)
	all := make([]any, 0, n)
	for len(all) < n {
		all = append(all, items...)
	}
	return all
}

func integers(operator string, a, b int64) any {
	switch operator {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum
		}
	case "-":
		if difference := a - b; (difference < a) == (b > 0) {
			return difference
		}
	case "*":
		if a == 0 || b == 0 {
			return int64(0)
		}
		if product := a * b; product/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
			return product
		}
	case "/":
		return divide(a, b)
	case "//":
		noZero(b == 0)
		if a == math.MinInt64 && b == -1 {
			tooLarge()
		}
		quotient := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			quotient--
		}
		return quotient
	case "%":
		noZero(b == 0)
		if b == -1 {
			return int64(0)
		}
		rest := a % b
		if rest != 0 && (rest < 0) != (b < 0) {
			rest += b
		}
		return rest
	case "**":
		return power(a, b)
	}
	tooLarge()
	return nil
}

func noZero(zero bool) {
	if zero {
		failf("a division by zero")
	}
}

func divide(a, b int64) any {
	noZero(b == 0)
	if a > 1<<53 || a < -1<<53 || b > 1<<53 || b < -1<<53 {
		failf("a division of numbers beyond 2^53 is not supported")
	}
	return float64(a) / float64(b)
}

// power multiplies: exact, or an error.
func power(a, b int64) any {
	if b < 0 {
		noZero(a == 0)
		if a == 1 || a == 2 || a == -1 { // exact; other roots of the result differ by library
			return math.Pow(float64(a), float64(b))
		}
		failf("** with a negative exponent is supported for 1 and 2 only")
	}
	switch a {
	case 0, 1:
		if b == 0 {
			return int64(1)
		}
		return a
	case -1:
		return 1 - 2*(b%2)
	}
	result := int64(1)
	for range min(b, 64) {
		next := result * a
		if next/a != result {
			tooLarge()
		}
		result = next
	}
	return result
}

func floats(operator string, a, b float64) any {
	switch operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		noZero(b == 0)
		return a / b
	case "//":
		noZero(b == 0)
		rest := floatRest(a, b)
		quotient := (a - rest) / b
		if quotient == 0 {
			return math.Copysign(0, a/b)
		}
		whole := math.Floor(quotient)
		if quotient-whole > 0.5 {
			whole++
		}
		return whole
	case "%":
		noZero(b == 0)
		return floatRest(a, b)
	}
	if a == math.Trunc(a) && b == 2 {
		return a * a
	}
	failf("** of fractions is not supported")
	return nil
}

// floatRest is a % b with the sign of b.
func floatRest(a, b float64) float64 {
	rest := math.Mod(a, b)
	switch {
	case rest == 0:
		return math.Copysign(0, b)
	case (b < 0) != (rest < 0):
		rest += b
	}
	return rest
}
