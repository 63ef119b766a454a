package docblocks_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown has for each sentence of what SECURITY.md promises the tests that show it: a folder and a test, a script of the
// command's, or a program that is run for it. A sentence that only says where something is written has none.
var shown = map[string][]string{
	"**For models from strangers** (a file, its external data, the config.json, tokenizer and templates beside it):": {},

	"The command never runs code that a model brings: no library beside it, no pickle, no script.":                                                                     {"cmd/rope-rewrite TestScripts/beside", "cmd/rope-rewrite TestScripts/libraries", "cmd/rope-rewrite TestNothingIsOpenedElsewhere", "onnx TestWhatIsNoModel"},
	"A chat template is run by an interpreter with bounds on time, depth and memory.":                                                                                  {"lm/chat/jinja TestHostile", "lm/chat/jinja FuzzRender"},
	"Nothing is read outside the model's folder and, for configurations, the one above it.":                                                                            {"onnx TestLocationsThatAreRefused", "cmd/internal/modelfolder TestLinksOut", "internal/modelconfig TestLinkedConfiguration", "cmd/rope-rewrite TestNothingIsOpenedElsewhere"},
	"A link is followed inside its folder, and from a snapshot of a Hugging Face hub's cache into the blobs of the same repository; `--follow-links` asks for others.": {"internal/links TestLinks", "internal/links TestHub", "cmd/internal/modelfolder TestHubCache", "cmd/rope-rewrite TestScripts/links", "lm/chat TestLinksOut", "lm/tokenizer TestLinkOut"},
	"What you name yourself may be a link.":                       {"internal/configfile TestReadBeside", "onnx TestModelThatIsALink"},
	"What is checked is the file that was opened.":                {"internal/links TestChangingLinks", "internal/links TestHard", "cmd/internal/modelfolder TestLinkMadeMeanwhile"},
	"Nothing is written but the outputs that were asked for.":     {"cmd/rope-rewrite TestNothingIsLeftElsewhere"},
	"No network is used.":                                         {"cmd/rope-rewrite TestNothingIsOpenedElsewhere"},
	"What was not verified is left unchanged, or refused.":        {"rewrite/internal/tests/lookalike TestLookalikes", "rewrite/internal/tests/damage TestProofRefusesDamage"},
	"[How far verification goes](docs/proof.md) is written down.": {},
	"Originals are never changed.":                                {"onnx TestOriginalsAreNeverTouched", "cmd/internal/modelfolder TestEveryFailedCallOfAFolder"},
	"An output appears complete, or not at all.":                  {"onnx TestEveryFailedCall", "onnx TestKilledSaveLeavesTheOldFile", "cmd/internal/modelfolder TestAfterAKill"},
	"A fault of the rewriter that a model shows is an error, of the command and of the Go package (`rewrite.FaultError`), and does not end your process.": {"rewrite TestFault"},
	"Names from a model are shown with control characters escaped, at most 200 characters of each, and are text in HTML and SVG.":                         {"cmd/rope-rewrite TestScripts/names", "internal/importcheck TestQuotedNamesAreShort", "cmd/rope-rewrite TestValidationPageEscapesNames", "cmd/internal/evaluation TestReportEscapesNames"},
	"ONNX Runtime runs pieces of the model in a child process.":                                                                                           {"internal/engine TestWorkerDies"},
	"When that process dies, hangs, or takes too much memory (`--max-memory`), the command goes on or ends with one sentence.":                            {"internal/engine TestWorkerDies", "internal/engine TestWorkerTimeout", "internal/engine TestWorkerMemory", "internal/engine TestWorkerGivesUp", "cmd/rope-rewrite TestScripts/limits", "cmd/rope-rewrite TestScripts/addressspace"},
	"`--max-seconds` bounds all of it.": {"cmd/rope-rewrite TestScripts/limits"},

	"**For the operator inside your process:** the library checks the shapes and types of its inputs and the values that it indexes with (positions, lengths, document ids).": {"customop TestRunRefusesShapes", "customop TestRunRefusesOtherInputs", "customop TestFixedCacheRefuses"},
	"A bad value is an error of ONNX Runtime, not a read or write outside a buffer.":                                                                                          {"customop TestRunRefusesOtherInputs", "native/test/hostile/hostile_test.cc"},
	"What was tried is in [docs/results/robustness.md](docs/results/robustness.md), with each test's name.":                                                                   {},

	"[THIRD-PARTY.md](THIRD-PARTY.md) lists what of others is shipped.":                                                            {"cmd/dev/modules TestPageIsCurrent"},
	"`make vulnerabilities` asks Go's database about all of it that is called.":                                                    {"scripts/vulnerabilities.sh"},
	"Releases have a list of components (CycloneDX) and checksums; two builds of one commit give the same bytes.":                  {"scripts/dist/sbom.sh", "scripts/dist/release-check.sh", "scripts/dist/twice.sh"},
	"Each archive and wheel has that list and the licenses of what is in it.":                                                      {"scripts/dist/contents.py"},
	"The workflow that publishes attests where each file was built, and `gh attestation verify FILE --repo OWNER/NAME` checks it.": {"cmd/dev/modules TestWorkflows"},
}

var (
	paragraphs = regexp.MustCompile(`\n\n|\n- `)
	sentences  = regexp.MustCompile("([.:]) ([A-Z\\[`*])")
)

// Each promise of SECURITY.md is shown by tests that exist, and none is listed that it does not make.
func TestSecurityIsShown(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(shown)
	for _, p := range paragraphs.Split(section(string(data), "What is promised")+"\n\n"+section(string(data), "What is inside"), -1) {
		p = strings.TrimPrefix(strings.Join(strings.Fields(p), " "), "- ")
		for s := range strings.SplitSeq(sentences.ReplaceAllString(p, "$1\n$2"), "\n") {
			if s == "" {
				continue
			}
			if _, ok := shown[s]; !ok {
				t.Errorf("no test is named for %q", s)
			}
			delete(left, s)
		}
	}
	for s := range left {
		t.Errorf("SECURITY.md does not say %q", s)
	}
	for s, tests := range shown {
		for _, test := range tests {
			if !exists(root, test) {
				t.Errorf("%q: there is no %s", s, test)
			}
		}
	}
}

func section(page, heading string) string {
	_, text, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// exists looks for a test.
func exists(root, test string) bool {
	folder, name, isGo := strings.Cut(test, " ")
	folder = filepath.Join(root, filepath.FromSlash(folder))
	if script, ok := strings.CutPrefix(name, "TestScripts/"); ok {
		folder, isGo = filepath.Join(folder, "testdata", script+".txtar"), false
	}
	if !isGo {
		_, err := os.Stat(folder)
		return err == nil
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
