package rope

import "slices"

// Setting is one parameter of a method as the method used it, with where its value
// came from. A parameter that the method did not use, because another one replaced
// it, has no Setting.
type Setting struct {
	Name  string `json:"name"` // the parameter's
	Value Value  `json:"value"`
	From  Source `json:"from"`
}

// Source says where the value of a parameter came from.
type Source string

const (
	Given         Source = "given"         // in the Spec
	Default       Source = "default"       // the method's own
	Configuration Source = "configuration" // the model's (Context.Original, Context.Theta)
	FromContext   Source = "context"       // the context that the model is meant for (Context.Length)
	Measured      Source = "measured"      // in the model's graph
	Computed      Source = "computed"      // from other parameters, by the method's formula
)

// settings notes what a method uses. A nil list notes nothing.
type settings []Setting

// note keeps the first value of each parameter; absence is no value.
func (l *settings) note(name string, v Value, from Source) {
	if l == nil || v.kind == Absent || slices.ContainsFunc(*l, func(s Setting) bool { return s.Name == name }) {
		return
	}
	*l = append(*l, Setting{name, v, from})
}

// of returns the list in the order of the method's parameters. Parameters that were
// given and not looked at are settings too: they were asked for.
func (l *settings) of(m Method, params map[string]Value) []Setting {
	var list []Setting
	for _, p := range m.Params {
		if v, ok := params[p.Name]; ok {
			l.note(p.Name, v, Given)
		}
		for _, s := range *l {
			if s.Name == p.Name {
				list = append(list, s)
			}
		}
	}
	return list
}
