package rewrite

import "github.com/rope-rewrite/rope-rewrite/customop"

const opsDomain = customop.Domain
