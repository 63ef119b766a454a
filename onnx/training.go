package onnx

import "github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"

// Training holds the graphs of a model that can be trained further.
type Training struct {
	Initialization *Graph // nil if absent
	Algorithm      *Graph // nil if absent

	src source
}

func (t *Training) origin() source { return t.src }

func (t *Training) original() view {
	o := &Training{src: t.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (t *Training) read(r *reader) error {
	err := t.src.decode(&onnxpb.TrainingInfoProto{}, 0, func(rec record) error {
		of := &t.Algorithm
		switch rec.num {
		case trainingInitialization:
			of = &t.Initialization
		case trainingAlgorithm:
		default:
			return nil
		}
		if *of == nil {
			*of = new(Graph)
		}
		(*of).src = append((*of).src, rec.body)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.openGraph(t.Initialization); err != nil {
		return err
	}
	return r.openGraph(t.Algorithm)
}

func (r *reader) openGraph(g *Graph) error {
	if g == nil {
		return nil
	}
	return r.open(g)
}

func (t *Training) fields() []field {
	var out []field
	if t.Initialization != nil {
		out = append(out, field{num: trainingInitialization, child: t.Initialization})
	}
	if t.Algorithm != nil {
		out = append(out, field{num: trainingAlgorithm, child: t.Algorithm})
	}
	return out
}
