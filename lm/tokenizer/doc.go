// Package tokenizer turns texts into the ids of a model's tokens and back, as
// tokenizer.json says, the file that Hugging Face's models come with.
//
//	t, err := tokenizer.Open("model")            // a folder with tokenizer.json
//	ids, err := t.EncodeWithSpecial("Hello")     // with the model's first token, if it has one
//	text := t.Decode(ids, false)                 // without special tokens
//
// EncodeGuarded makes no special tokens of what is from users. A Stream decodes ids as a model gives them:
//
//	s := t.Stream(false)
//	for id := range generated {
//		fmt.Print(s.Add(id))
//	}
//	fmt.Print(s.Flush())
//
// # How a text becomes ids
//
// The file names the parts that a text goes through, and a source file of this
// package holds each kind: added tokens such as <|im_start|> are cut out
// (added.go), what is between them is normalized (normalize.go), cut into pieces
// (pretokenize.go), each piece becomes tokens (bpe.go, unigram.go, wordpiece.go),
// and special tokens are put around them (postprocess.go). Decoders (decode.go)
// go the other way, token by token.
//
// # What is the same as elsewhere
//
// The results are those of Python's tokenizers 0.23, for texts of any kind: the
// tests compare a thousand awkward strings for each of nineteen tokenizers.
// Bytes that are not UTF-8 become U+FFFD as in Python. The fields truncation and
// padding are for batches and are not applied, as transformers does not. A part or
// field that is not known here, and a dropout, is refused by Open with its name.
//
// Known differences: Unicode's tables are Go's (version 15), and Python's are
// older in normal forms and for BERT's punctuation (8 to 12) and newer in regular
// expressions (16 and later), which shows with letters that were added in
// between. In a regular expression that ignores case, one letter does not match
// two (ß and ss). A stream of tokens that the decoders Fuse and ByteLevel both work
// on reads each by itself, where Decode leaves the whole text unread if a letter in
// it stands for no byte.
//
// # Hostile files
//
// A text may take 20 seconds of a processor and four more for each megabyte, and
// regular expressions have a bounded stack. That is counted as work: on a busy
// machine a text takes longer and is not refused. (Where the system is not Linux, the
// clock counts.) Files have at most 64 MiB, and merging takes n log n steps for n
// letters. EncodeWith ends with a context, and refuses what is too long by its number
// of bytes.
package tokenizer
