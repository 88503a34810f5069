// Package telegram is the push channel to Telegram chats. The bot library puts
// the token into the text of every network error, takes no context and ignores
// the HTTP status: here each call goes through a wire of its own that ends with
// Send's context, reads the answer itself, and lets no such text through.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"tandem/internal/push"
)

// Options say which bot speaks, and to whom.
type Options struct {
	Token     string            // from BotFather, such as 123456:ABC…
	Endpoint  string            // base URL without a slash at its end; empty: Telegram's
	Transport http.RoundTripper // carries each call
}

// Bot speaks as one bot. It makes no call until it has something to send, so a
// Telegram that is away at the start only delays the channel.
type Bot struct {
	api      tgbotapi.BotAPI
	base     http.RoundTripper
	progress progress
}

// New returns a bot. Whether the token is good shows at the first Send.
func New(o Options) *Bot {
	b := &Bot{api: tgbotapi.BotAPI{Token: o.Token}, base: o.Transport}
	endpoint := cmp.Or(o.Endpoint, "https://api.telegram.org")
	b.api.SetAPIEndpoint(strings.ReplaceAll(endpoint, "%", "%%") + "/bot%s/%s")
	return b
}

// Name implements push.Channel.
func (*Bot) Name() string { return "telegram" }

// Send implements push.Channel. The address is the chat's number in decimal; the
// id lists the ids of all parts in order, such as "41,42", since whoever edits
// the message later must find each of them.
//
// A long text goes out in parts, one call each. If a part fails after others
// were accepted, the whole fails, so that the rest is not lost; the bot remembers
// which parts of this fire the chat has, and the next Send goes on from there.
// Otherwise a chat under flood control would get the first part at each retry and
// never the last. A restart forgets that, and repeats them.
func (b *Bot) Send(ctx context.Context, to push.Target, m push.Message) (string, error) {
	chat, err := strconv.ParseInt(to.Address, 10, 64)
	if err != nil {
		return "", &push.Failure{Verdict: push.Rejected, Code: "not_a_chat"}
	}
	text := render(m)
	parts := split(text.body, limit)
	if len(parts) == 0 {
		return "", &push.Failure{Verdict: push.Rejected, Code: "no_text"}
	}
	key := unfinishedKey(chat, m.FireID)
	ids := b.progress.sent(key, parts)
	for i := len(ids); i < len(parts); i++ {
		id, err := b.sendPart(ctx, chat, parts[i], text.boldIn(parts, i))
		if err != nil {
			b.progress.keep(key, parts, ids, err)
			return "", err
		}
		ids = append(ids, strconv.Itoa(id))
	}
	b.progress.forget(key)
	return strings.Join(ids, ","), nil
}

// sendPart makes one call; a second, plain one only if Telegram refused the first
// for good and the emphasis may be why.
func (b *Bot) sendPart(ctx context.Context, chat int64, text string, bold int) (int, error) {
	m := tgbotapi.NewMessage(chat, text)
	if bold > 0 {
		m.Entities = []tgbotapi.MessageEntity{{Type: "bold", Length: bold}}
	}
	id, err := b.call(ctx, m)
	if err != nil && err.Code == "400" && bold > 0 {
		m.Entities = nil
		id, err = b.call(ctx, m)
	}
	if err != nil {
		return 0, err
	}
	return id, nil
}

// call sends m once. Each failure is one that this package has worded.
func (b *Bot) call(ctx context.Context, m tgbotapi.MessageConfig) (int, *push.Failure) {
	api := b.api
	w := &wire{ctx: ctx, base: b.base, token: b.api.Token}
	api.Client = w
	sent, err := api.Send(m)
	if err == nil && sent.MessageID != 0 {
		return sent.MessageID, nil
	}
	if refusal, ok := errors.AsType[*tgbotapi.Error](err); ok {
		return 0, judge(refusal)
	}
	return 0, w.failure()
}
