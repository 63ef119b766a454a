package evaluation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// About is all that decides what the samples of an evaluation are.
type About struct {
	Variants []string          `json:"variants"` // names and models, in turn
	Context  int64             `json:"context"`  // tokens that methods are meant for
	Files    map[string]string `json:"files"`    // SHA-256 of the models, their weights and what stands beside them, by path
	Plan                       // with digests of its texts, and every form
}

// beside are the files of a model's folder that a sample may depend on: the prompt, where an answer
// ends, and the trained length, which methods take from it.
var beside = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"chat_template.jinja", "chat_template.json", "additional_chat_templates/default.jinja",
	"config.json", "generation_config.json", "genai_config.json",
}

// NewAbout reads all files of the variants' models.
func NewAbout(ctx context.Context, plan Plan, variants []Variant, length int64) (a About, err error) {
	a = About{Context: length, Files: map[string]string{}, Plan: plan}
	a.Memory = 0 // changes nothing that is measured
	a.Text, a.Haystack = textDigest(plan.Text), textDigest(plan.Haystack)
	a.Forms = map[string]task.Form{}
	for _, name := range plan.Tasks {
		if name != Perplexity {
			t, err := task.Of(name, Perplexity)
			if err != nil {
				return a, err
			}
			f, err := plan.form(t)
			if err != nil {
				return a, err
			}
			f.Haystack = textDigest(f.Haystack)
			a.Forms[name] = f
		}
	}
	for _, v := range variants {
		a.Variants = append(a.Variants, v.Name, v.Model)
		if err := a.addFiles(ctx, v.Model); err != nil {
			return a, err
		}
	}
	return a, nil
}

// addFiles adds a model's files.
func (a *About) addFiles(ctx context.Context, model string) error {
	file, err := lm.File(model)
	if err != nil || a.Files[file] != "" {
		return err
	}
	m, err := onnx.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	paths := []string{file}
	for g := range m.Graph.AllGraphs() {
		for _, t := range g.Initializers {
			if location, _, _, ok := t.External(); ok {
				paths = append(paths, filepath.Join(filepath.Dir(file), location))
			}
		}
	}
	for _, folder := range []string{filepath.Dir(file), lm.Folder(file)} {
		for _, name := range beside {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	for _, path := range paths {
		if a.Files[path] != "" {
			continue
		}
		digest, err := fileDigest(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // weights that are missing are refused where the model is opened
		}
		if err != nil {
			return err
		}
		a.Files[path] = digest
	}
	return nil
}

// differs says in what the title of a journal is not this evaluation's.
func (a About) differs(title []byte) error {
	var was About
	if err := json.Unmarshal(title, &was); err != nil || was.Files == nil {
		return errors.New("its samples do not say which model they belong to; name another folder")
	}
	var changed []string
	for _, path := range slices.Sorted(maps.Keys(union(a.Files, was.Files))) {
		if a.Files[path] != was.Files[path] {
			changed = append(changed, path)
		}
	}
	texts := []struct{ what, is, was string }{{"--text", a.Text, was.Text}, {"--haystack", a.Haystack, was.Haystack}}
	for _, t := range texts {
		if t.is != t.was {
			changed = append(changed, "the text of "+t.what)
		}
	}
	if len(changed) == 0 || !slices.Equal(a.Variants, was.Variants) {
		return errors.New("it belongs to an evaluation with other models, tasks or numbers; name another folder")
	}
	return fmt.Errorf("%s changed after its samples were computed; name another folder", strings.Join(changed, ", "))
}

func union(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// textDigest is the hash of a text, which may be long.
func textDigest(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// digest is the hash of a prompt's tokens.
func digest(tokens []int64) string {
	return textDigest(strings.Trim(strings.ReplaceAll(fmt.Sprint(tokens), " ", ","), "[]"))
}

// fileDigest is the hash of a file, which may be a large one.
func fileDigest(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file, so it is not read", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(sum, f, 64<<20)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
