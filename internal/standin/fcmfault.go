package standin

import (
	"net/http"
	"time"
)

// What FCM answers to a send it does not accept, in its own words.
var (
	Unregistered    = fcmFault(http.StatusNotFound, "NOT_FOUND", "UNREGISTERED", 0)
	NotFound        = fcmFault(http.StatusNotFound, "NOT_FOUND", "", 0) // wrong project or path; says nothing of the device
	InvalidArgument = invalidArgument("message.token")
	SenderMismatch  = fcmFault(http.StatusForbidden, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", 0)
	Forbidden       = fcmFault(http.StatusForbidden, "PERMISSION_DENIED", "", 0)
	Unauthenticated = fcmFault(http.StatusUnauthorized, "UNAUTHENTICATED", "", 0)
	ThirdPartyAuth  = fcmFault(http.StatusUnauthorized, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", 0)
	InternalError   = fcmFault(http.StatusInternalServerError, "INTERNAL", "INTERNAL", 0)
)

// Quota is FCM's 429; a wait of 0 leaves Retry-After out, as the real one may.
func Quota(after time.Duration) Fault {
	return fcmFault(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", after)
}

// Unavailable is FCM's 503; a wait of 0 leaves Retry-After out.
func Unavailable(after time.Duration) Fault {
	return fcmFault(http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE", after)
}

func invalidArgument(field string) Fault {
	return jsonFault(http.StatusBadRequest, 0, fcmError(http.StatusBadRequest, "INVALID_ARGUMENT",
		fcmDetail("INVALID_ARGUMENT"),
		map[string]any{
			"@type":           "type.googleapis.com/google.rpc.BadRequest",
			"fieldViolations": []map[string]string{{"field": field, "description": "Invalid value at '" + field + "'"}},
		}))
}

// fcmFault answers with a canonical status word and, if code is not empty, the detail that carries FCM's own.
func fcmFault(status int, word, code string, after time.Duration) Fault {
	if code == "" {
		return jsonFault(status, after, fcmError(status, word))
	}
	return jsonFault(status, after, fcmError(status, word, fcmDetail(code)))
}

func fcmDetail(code string) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}
}

func fcmError(status int, word string, details ...map[string]any) any {
	e := map[string]any{"code": status, "message": "The stand-in refuses this: " + word + ".", "status": word}
	if len(details) > 0 {
		e["details"] = details
	}
	return map[string]any{"error": e}
}
