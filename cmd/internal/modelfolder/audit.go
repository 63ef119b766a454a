package modelfolder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// audit compares the new models with their new configurations, and warns of what rope-rewrite audit
// will find in the new folder.
func (f *Folder) audit(ctx context.Context, opts rewrite.Options) error {
	models := map[string][]string{} // by what is found
	var order []string
	say := opts.Progress
	for i, x := range f.Files {
		if x.What != Rewritten {
			continue
		}
		if say != nil {
			opts.Progress = func(what string) { say(x.Path + ": audit: " + what) }
		}
		genai := f.above(x.Path, genaiConfigFile)
		beside := audit.Configurations{Config: f.content(f.above(x.Path, configFile)), GenAI: f.content(genai), Model: strings.TrimPrefix(x.Path, path.Dir(genai)+"/")}
		found, err := audit.Compare(ctx, f.lines[i].model, beside, opts)
		if ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory) {
			return err
		}
		if err != nil { // there is no configuration, or it cannot be read, which was said
			continue
		}
		for _, l := range found.Lines {
			if l.Verdict != audit.Differs {
				continue
			}
			text := differs(l)
			if models[text] == nil {
				order = append(order, text)
			}
			if !slices.Contains(models[text], x.Path) {
				models[text] = append(models[text], x.Path)
			}
		}
	}
	for _, text := range order {
		f.Warnings = append(f.Warnings, strings.Join(models[text], ", ")+": "+text)
	}
	return nil
}

// differs is a claim that is not so, in a sentence.
func differs(l audit.Line) string {
	where := ""
	if l.Where != "" {
		where = " in layers " + l.Where
	}
	if l.Why == audit.Unsaid {
		return fmt.Sprintf("audit will exit with 5: %s does not claim it, but the graph has %s %s%s", l.From, l.What, l.Found, where)
	}
	text := fmt.Sprintf("audit will exit with 5: %s says %s", l.From, l.Expected)
	if l.Found != "" {
		text += fmt.Sprintf(", and %s is %s%s", l.What, l.Found, where)
	}
	if l.Why != "" {
		text += " (" + l.Why + ")"
	}
	return text
}

// content is what a configuration of the new folder holds, nil where there is none that can be read.
func (f *Folder) content(name string) []byte {
	if name == "" {
		return nil
	}
	for i, x := range f.Files {
		if x.Path == name && f.lines[i].data != nil {
			return f.lines[i].data
		}
	}
	data, err := configfile.ReadIn(f.from, filepath.FromSlash(name), configfile.Config)
	if err != nil {
		return nil
	}
	return data
}
