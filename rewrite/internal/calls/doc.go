// Package calls inlines the calls of a model's own functions. Attention may be inside such
// functions, or consist of calls of them; the analysis can read it once they are inlined.
// Calls in which nothing was replaced are folded again and are unchanged in the result.
package calls
