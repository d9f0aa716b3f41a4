-- A database of schema 8, as sqlite3's dump writes it: a conversation that was rewound, with all its state set and messages
-- that wait, the subagent it used, a fork of it, and a session of another project.
PRAGMA application_id = 1095193685;
PRAGMA user_version = 8;
BEGIN TRANSACTION;
CREATE TABLE compaction (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        operation_id TEXT NOT NULL,
        active INTEGER NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    );
INSERT INTO "compaction" VALUES(1,'ses_01a1ff1c4c0a467ed10e41','cmp_01a1ff1c4da2d9ac8a208a','op_01a1ff1c4da271f2c035fb',1,'{"kind":"prune","message_ids":["msg_01a1ff1c4d837dac95610a"],"created":1.0,"reason":"auto","summary_id":null,"clips":{},"before_tokens":null,"after_tokens":null,"kept_messages":null,"seconds":null,"cost_usd":null,"model":null,"focus":null,"files":[],"step_id":null,"left_out":0}');
INSERT INTO "compaction" VALUES(2,'ses_01a1ff1c4db7eaa271b6e2','cmp_01a1ff1c4da2d9ac8a208a','op_01a1ff1c4da271f2c035fb',1,'{"kind":"prune","message_ids":["msg_01a1ff1c4d837dac95610a"],"created":1.0,"reason":"auto","summary_id":null,"clips":{},"before_tokens":null,"after_tokens":null,"kept_messages":null,"seconds":null,"cost_usd":null,"model":null,"focus":null,"files":[],"step_id":null,"left_out":0}');
CREATE TABLE content (id TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE fixed_set (id TEXT PRIMARY KEY, data TEXT NOT NULL);
INSERT INTO "fixed_set" VALUES('ae54cffa430c43dd77a07dd8','[{"row":"system","group":"system","label":"System prompt","chars":1146,"fingerprint":"cd3816623076440c2b9b51fd","raw_tokens":287,"ascii_chars":1146,"deferred_tokens":null,"path":null,"change":""},{"row":"environment","group":"environment","label":"Environment","chars":211,"fingerprint":"bcdf78a654feaec97dbde458","raw_tokens":53,"ascii_chars":211,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"read","chars":300,"fingerprint":"2301467c9c81c0d2daa79abf","raw_tokens":75,"ascii_chars":300,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"write","chars":206,"fingerprint":"173e5a3b450ba3ecc82aec1d","raw_tokens":52,"ascii_chars":206,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"edit","chars":441,"fingerprint":"1b9ab8a67de492b05e8523c9","raw_tokens":111,"ascii_chars":441,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"list","chars":216,"fingerprint":"10177fc1f3b40f6ba652a9e6","raw_tokens":54,"ascii_chars":216,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"glob","chars":210,"fingerprint":"e3c8f48b40a77075e2d56430","raw_tokens":53,"ascii_chars":210,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"grep","chars":427,"fingerprint":"f964850b3bfe756e5289c4d0","raw_tokens":107,"ascii_chars":427,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"bash","chars":268,"fingerprint":"7eae73f4490938a7d7c2db0c","raw_tokens":67,"ascii_chars":268,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"fetch","chars":146,"fingerprint":"e6f0fa7f740562cb0d8b37f8","raw_tokens":37,"ascii_chars":146,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"todo","chars":332,"fingerprint":"bcb8d00c2866197a9da00a2e","raw_tokens":83,"ascii_chars":332,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"subagent","chars":310,"fingerprint":"cb1b698d816242f76594987c","raw_tokens":78,"ascii_chars":310,"deferred_tokens":null,"path":null,"change":""}]');
INSERT INTO "fixed_set" VALUES('8ac62c77b96d063ffe9681b1','[{"row":"system","group":"system","label":"System prompt","chars":1146,"fingerprint":"cd3816623076440c2b9b51fd","raw_tokens":287,"ascii_chars":1146,"deferred_tokens":null,"path":null,"change":""},{"row":"environment","group":"environment","label":"Environment","chars":211,"fingerprint":"bcdf78a654feaec97dbde458","raw_tokens":53,"ascii_chars":211,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"read","chars":300,"fingerprint":"2301467c9c81c0d2daa79abf","raw_tokens":75,"ascii_chars":300,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"write","chars":206,"fingerprint":"173e5a3b450ba3ecc82aec1d","raw_tokens":52,"ascii_chars":206,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"edit","chars":441,"fingerprint":"1b9ab8a67de492b05e8523c9","raw_tokens":111,"ascii_chars":441,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"list","chars":216,"fingerprint":"10177fc1f3b40f6ba652a9e6","raw_tokens":54,"ascii_chars":216,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"glob","chars":210,"fingerprint":"e3c8f48b40a77075e2d56430","raw_tokens":53,"ascii_chars":210,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"grep","chars":427,"fingerprint":"f964850b3bfe756e5289c4d0","raw_tokens":107,"ascii_chars":427,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"bash","chars":268,"fingerprint":"7eae73f4490938a7d7c2db0c","raw_tokens":67,"ascii_chars":268,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"fetch","chars":146,"fingerprint":"e6f0fa7f740562cb0d8b37f8","raw_tokens":37,"ascii_chars":146,"deferred_tokens":null,"path":null,"change":""}]');
INSERT INTO "fixed_set" VALUES('b155c8fcf9836306bdc67a77','[{"row":"system","group":"system","label":"System prompt","chars":1146,"fingerprint":"cd3816623076440c2b9b51fd","raw_tokens":287,"ascii_chars":1146,"deferred_tokens":null,"path":null,"change":""},{"row":"environment","group":"environment","label":"Environment","chars":211,"fingerprint":"bcdf78a654feaec97dbde458","raw_tokens":53,"ascii_chars":211,"deferred_tokens":null,"path":null,"change":""},{"row":"documents","group":"notes.md","label":"notes.md","chars":65,"fingerprint":"d75c6902cb586a321f35aab0","raw_tokens":17,"ascii_chars":65,"deferred_tokens":null,"path":"/home/user/project/notes.md","change":""},{"row":"tools","group":"builtin","label":"read","chars":300,"fingerprint":"2301467c9c81c0d2daa79abf","raw_tokens":75,"ascii_chars":300,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"write","chars":206,"fingerprint":"173e5a3b450ba3ecc82aec1d","raw_tokens":52,"ascii_chars":206,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"edit","chars":441,"fingerprint":"1b9ab8a67de492b05e8523c9","raw_tokens":111,"ascii_chars":441,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"list","chars":216,"fingerprint":"10177fc1f3b40f6ba652a9e6","raw_tokens":54,"ascii_chars":216,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"glob","chars":210,"fingerprint":"e3c8f48b40a77075e2d56430","raw_tokens":53,"ascii_chars":210,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"grep","chars":427,"fingerprint":"f964850b3bfe756e5289c4d0","raw_tokens":107,"ascii_chars":427,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"bash","chars":268,"fingerprint":"7eae73f4490938a7d7c2db0c","raw_tokens":67,"ascii_chars":268,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"fetch","chars":146,"fingerprint":"e6f0fa7f740562cb0d8b37f8","raw_tokens":37,"ascii_chars":146,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"todo","chars":332,"fingerprint":"bcb8d00c2866197a9da00a2e","raw_tokens":83,"ascii_chars":332,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"subagent","chars":310,"fingerprint":"cb1b698d816242f76594987c","raw_tokens":78,"ascii_chars":310,"deferred_tokens":null,"path":null,"change":""}]');
INSERT INTO "fixed_set" VALUES('6571ac4c873aa8e405f8f207','[{"row":"system","group":"system","label":"System prompt","chars":1146,"fingerprint":"cd3816623076440c2b9b51fd","raw_tokens":287,"ascii_chars":1146,"deferred_tokens":null,"path":null,"change":""},{"row":"environment","group":"environment","label":"Environment","chars":207,"fingerprint":"eaa33fbf2731bd2d5e15ebe1","raw_tokens":52,"ascii_chars":207,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"read","chars":300,"fingerprint":"2301467c9c81c0d2daa79abf","raw_tokens":75,"ascii_chars":300,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"write","chars":206,"fingerprint":"173e5a3b450ba3ecc82aec1d","raw_tokens":52,"ascii_chars":206,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"edit","chars":441,"fingerprint":"1b9ab8a67de492b05e8523c9","raw_tokens":111,"ascii_chars":441,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"list","chars":216,"fingerprint":"10177fc1f3b40f6ba652a9e6","raw_tokens":54,"ascii_chars":216,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"glob","chars":210,"fingerprint":"e3c8f48b40a77075e2d56430","raw_tokens":53,"ascii_chars":210,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"grep","chars":427,"fingerprint":"f964850b3bfe756e5289c4d0","raw_tokens":107,"ascii_chars":427,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"bash","chars":268,"fingerprint":"7eae73f4490938a7d7c2db0c","raw_tokens":67,"ascii_chars":268,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"fetch","chars":146,"fingerprint":"e6f0fa7f740562cb0d8b37f8","raw_tokens":37,"ascii_chars":146,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"todo","chars":332,"fingerprint":"bcb8d00c2866197a9da00a2e","raw_tokens":83,"ascii_chars":332,"deferred_tokens":null,"path":null,"change":""},{"row":"tools","group":"builtin","label":"subagent","chars":310,"fingerprint":"cb1b698d816242f76594987c","raw_tokens":78,"ascii_chars":310,"deferred_tokens":null,"path":null,"change":""}]');
CREATE TABLE growth (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        model BLOB NOT NULL,
        step_id TEXT NOT NULL UNIQUE,
        actual INTEGER NOT NULL,
        estimated INTEGER NOT NULL
    );
CREATE TABLE learned_limit (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        max_window INTEGER,
        max_input INTEGER,
        max_output INTEGER,
        believed INTEGER,
        configured_window INTEGER,
        configured_output INTEGER,
        learned_at REAL NOT NULL,
        text BLOB NOT NULL,
        PRIMARY KEY (model, server)
    ) WITHOUT ROWID;
CREATE TABLE message (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        in_tree INTEGER NOT NULL,
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        parent_id TEXT,
        raw_tokens INTEGER,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    );
INSERT INTO "message" VALUES(1,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4c13c1837230d4',1,'user','complete',NULL,4,'{"created":1795281406.995918,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(2,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4c255b24e5ae77',1,'assistant','complete','msg_01a1ff1c4c13c1837230d4',18,'{"created":1795281407.013047,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4c2463e0405a83","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(3,'ses_01a1ff1c4d3419bdc15648','msg_01a1ff1c4d3641309a798a',1,'user','complete',NULL,6,'{"created":1795281407.2864807,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(4,'ses_01a1ff1c4d3419bdc15648','msg_01a1ff1c4d39c949f74402',1,'assistant','complete','msg_01a1ff1c4d3641309a798a',10,'{"created":1795281407.2892075,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4d39e43ffaaadc","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(5,'ses_01a1ff1c4d3419bdc15648','msg_01a1ff1c4d7b7cac098cb2',1,'tool','complete','msg_01a1ff1c4d39c949f74402',3,'{"created":1795281407.3556216,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(6,'ses_01a1ff1c4d3419bdc15648','msg_01a1ff1c4d7ebfaf2ca8b2',1,'assistant','complete','msg_01a1ff1c4d7b7cac098cb2',NULL,'{"created":1795281407.3581307,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4d7ea3ded48b55","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(7,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4d837dac95610a',1,'tool','complete','msg_01a1ff1c4c255b24e5ae77',5,'{"created":1795281407.3630745,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(8,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4d8bcaace67685',1,'assistant','complete','msg_01a1ff1c4d837dac95610a',5,'{"created":1795281407.3712888,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4d8b0fa030c282","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(9,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4d9586a4fbf36d',1,'user','complete','msg_01a1ff1c4d8bcaace67685',5,'{"created":1795281407.3815632,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(10,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4d9d2498c445e2',1,'assistant','complete','msg_01a1ff1c4d9586a4fbf36d',NULL,'{"created":1795281407.3898563,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4d9d90521177a8","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(11,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4da3b041a0d800',1,'user','complete','msg_01a1ff1c4d8bcaace67685',4,'{"created":1795281407.3956523,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(12,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4daa3f71e39583',1,'assistant','complete','msg_01a1ff1c4da3b041a0d800',NULL,'{"created":1795281407.4027889,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4daad489199fd2","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(13,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4c13c1837230d4',1,'user','complete',NULL,4,'{"created":1795281406.995918,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(14,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4c255b24e5ae77',1,'assistant','complete','msg_01a1ff1c4c13c1837230d4',18,'{"created":1795281407.013047,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4c2463e0405a83","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(15,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4d837dac95610a',1,'tool','complete','msg_01a1ff1c4c255b24e5ae77',5,'{"created":1795281407.3630745,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(16,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4d8bcaace67685',1,'assistant','complete','msg_01a1ff1c4d837dac95610a',5,'{"created":1795281407.3712888,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4d8b0fa030c282","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(17,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4da3b041a0d800',1,'user','complete','msg_01a1ff1c4d8bcaace67685',4,'{"created":1795281407.3956523,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(18,'ses_01a1ff1c4db7eaa271b6e2','msg_01a1ff1c4daa3f71e39583',1,'assistant','complete','msg_01a1ff1c4da3b041a0d800',8,'{"created":1795281407.4027889,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4daad489199fd2","note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(19,'ses_01a1ff1c4e0e9fd46a5850','msg_01a1ff1c4e18538ed99e3f',1,'user','complete',NULL,2,'{"created":1795281407.5122728,"origin":null,"step_id":null,"note":null,"provider_metadata":null}');
INSERT INTO "message" VALUES(20,'ses_01a1ff1c4e0e9fd46a5850','msg_01a1ff1c4e24a7b013298f',1,'assistant','complete','msg_01a1ff1c4e18538ed99e3f',NULL,'{"created":1795281407.5245085,"origin":{"provider":"demo","api":"chat","model":"demo"},"step_id":"step_01a1ff1c4e24dc261600bb","note":null,"provider_metadata":null}');
CREATE TABLE part (
        message INTEGER NOT NULL REFERENCES message (n) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (message, position)
    ) WITHOUT ROWID;
INSERT INTO "part" VALUES(1,0,'{"text":"Where is add?","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(2,0,'{"call_id":"call_ef2424972d45","name":"subagent","arguments":"{\"description\": \"find add\", \"prompt\": \"Where is add defined?\"}","provider_metadata":null,"type":"tool_call"}');
INSERT INTO "part" VALUES(3,0,'{"text":"Where is add defined?","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(4,0,'{"text":"Searching.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(4,1,'{"call_id":"call_d95961677fb8","name":"grep","arguments":"{\"pattern\": \"def add\"}","provider_metadata":null,"type":"tool_call"}');
INSERT INTO "part" VALUES(5,0,'{"call_id":"call_d95961677fb8","name":"grep","text":"No matches.","is_error":false,"display":{"kind":"text","summary":"0 matches"},"seconds":0.06,"provider_metadata":null,"type":"tool_result"}');
INSERT INTO "part" VALUES(6,0,'{"text":"add is in calc.py:1.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(7,0,'{"call_id":"call_ef2424972d45","name":"subagent","text":"add is in calc.py:1.","is_error":false,"display":{"summary":"subagent: find add"},"seconds":0.079,"provider_metadata":null,"type":"tool_result"}');
INSERT INTO "part" VALUES(8,0,'{"text":"Found it: calc.py.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(9,0,'{"text":"Plan the release \u2691","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(10,0,'{"text":"A first plan.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(11,0,'{"text":"Plan it again","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(12,0,'{"text":"A second plan, after the rewind.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(13,0,'{"text":"Where is add?","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(14,0,'{"call_id":"call_ef2424972d45","name":"subagent","arguments":"{\"description\": \"find add\", \"prompt\": \"Where is add defined?\"}","provider_metadata":null,"type":"tool_call"}');
INSERT INTO "part" VALUES(15,0,'{"call_id":"call_ef2424972d45","name":"subagent","text":"add is in calc.py:1.","is_error":false,"display":{"summary":"subagent: find add"},"seconds":0.079,"provider_metadata":null,"type":"tool_result"}');
INSERT INTO "part" VALUES(16,0,'{"text":"Found it: calc.py.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(17,0,'{"text":"Plan it again","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(18,0,'{"text":"A second plan, after the rewind.","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(19,0,'{"text":"Hello","provider_metadata":null,"type":"text"}');
INSERT INTO "part" VALUES(20,0,'{"text":"Hello!","provider_metadata":null,"type":"text"}');
CREATE TABLE permission_rule (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        project BLOB NOT NULL,
        identity TEXT NOT NULL,
        rule BLOB NOT NULL,
        UNIQUE (project, identity, rule)
    );
CREATE TABLE replay_fact (
        model BLOB NOT NULL,
        server BLOB NOT NULL,
        fact TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (model, server, fact)
    ) WITHOUT ROWID;
CREATE TABLE session (
        id TEXT PRIMARY KEY,
        project BLOB NOT NULL,
        title BLOB NOT NULL,
        model BLOB NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        head_id TEXT,
        messages INTEGER NOT NULL DEFAULT 0,
        parent_session TEXT,
        preview BLOB NOT NULL,
        search BLOB NOT NULL,
        state TEXT NOT NULL
    );
INSERT INTO "session" VALUES('ses_01a1ff1c4c0a467ed10e41',X'2F686F6D652F757365722F70726F6A656374',X'5768657265206973206164643F',X'64656D6F',1.79528140698654723166e+09,1.79528140740827322008e+09,'msg_01a1ff1c4daa3f71e39583',8,NULL,X'5768657265206973206164643F',X'7768657265206973206164643F0A7768657265206973206164643F0A7365735F303161316666316334633061343637656431306534310A2F686F6D652F757365722F70726F6A656374','{"pinned":["/home/user/project/notes.md"],"compaction_failures":3,"compaction_paused":true,"compaction_off":true,"thinking":"high","environment":"Environment at the start of the session:\n- working directory: /home/user/project\n- project root: /home/user/project\n- platform: Linux 6.1\n- date: 2026-11-21\n- not a git repository"}');
INSERT INTO "session" VALUES('ses_01a1ff1c4d3419bdc15648',X'2F686F6D652F757365722F70726F6A656374',X'E286B32066696E6420616464',X'64656D6F',1.79528140728430700302e+09,1.79528140735907459262e+09,'msg_01a1ff1c4d7ebfaf2ca8b2',4,'ses_01a1ff1c4c0a467ed10e41',X'57686572652069732061646420646566696E65643F',X'E286B32066696E64206164640A77686572652069732061646420646566696E65643F0A7365735F303161316666316334643334313962646331353634380A2F686F6D652F757365722F70726F6A656374','{"pinned":[],"compaction_failures":0,"compaction_paused":false,"compaction_off":false,"thinking":null,"environment":null,"subagent":true}');
INSERT INTO "session" VALUES('ses_01a1ff1c4db7eaa271b6e2',X'2F686F6D652F757365722F70726F6A656374',X'4120636F7079206F66206974',X'64656D6F',1.79528140741536664957e+09,1.79528140744172477714e+09,'msg_01a1ff1c4daa3f71e39583',6,'ses_01a1ff1c4c0a467ed10e41',X'5768657265206973206164643F',X'6120636F7079206F662069740A7768657265206973206164643F0A7365735F303161316666316334646237656161323731623665320A2F686F6D652F757365722F70726F6A656374','{"pinned":["/home/user/project/notes.md"],"compaction_failures":3,"compaction_paused":true,"compaction_off":true,"thinking":"high","environment":"Environment at the start of the session:\n- working directory: /home/user/project\n- project root: /home/user/project\n- platform: Linux 6.1\n- date: 2026-11-21\n- not a git repository"}');
INSERT INTO "session" VALUES('ses_01a1ff1c4e0e9fd46a5850',X'2F686F6D652F757365722F6F74686572',X'48656C6C6F',X'64656D6F',1.79528140750202774996e+09,1.79528140752993106837e+09,'msg_01a1ff1c4e24a7b013298f',2,NULL,X'48656C6C6F',X'68656C6C6F0A68656C6C6F0A7365735F303161316666316334653065396664343661353835300A2F686F6D652F757365722F6F74686572','{"pinned":[],"compaction_failures":0,"compaction_paused":false,"compaction_off":false,"thinking":null,"environment":"Environment at the start of the session:\n- working directory: /home/user/other\n- project root: /home/user/other\n- platform: Linux 6.1\n- date: 2026-11-21\n- not a git repository"}');
CREATE TABLE snapshot (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        path BLOB NOT NULL,
        content_id TEXT REFERENCES content (id),
        mode INTEGER,
        created REAL NOT NULL,
        UNIQUE (session_id, message_id, path)
    );
CREATE TABLE step (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        status TEXT NOT NULL,
        message_id TEXT,
        fixed_id TEXT REFERENCES fixed_set (id),
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    );
INSERT INTO "step" VALUES(1,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4c2463e0405a83','complete','msg_01a1ff1c4c255b24e5ae77','ae54cffa430c43dd77a07dd8','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.0129976,"finished":1795281407.016786,"usage":{"input":997,"output":18,"reasoning":0,"cache_read":0,"cache_write":997,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"a2408b98cda06662fc484ec0","prefix_fingerprint":"f55af5f5b6c34505f1155f6b","fixed_fingerprint":"a355e20d1eee76fb9587ad91","anchor_step":null,"prune_ids":[],"estimated_input":1065,"estimated_growth":8,"estimated_messages":8,"known_input":null,"actual_growth":null,"actual_input":997,"max_output":2000,"thinking":"medium","finish_reason":"tool_calls","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(2,'ses_01a1ff1c4d3419bdc15648','step_01a1ff1c4d39e43ffaaadc','complete','msg_01a1ff1c4d39c949f74402','8ac62c77b96d063ffe9681b1','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.2891626,"finished":1795281407.2924845,"usage":{"input":854,"output":10,"reasoning":0,"cache_read":0,"cache_write":854,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"89fd18dd925445c62f346b75","prefix_fingerprint":"918ef2bc7bbfcc4fbcc07a9e","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":null,"prune_ids":[],"estimated_input":906,"estimated_growth":10,"estimated_messages":10,"known_input":null,"actual_growth":null,"actual_input":854,"max_output":2000,"thinking":"medium","finish_reason":"tool_calls","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(3,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4d3cac66c37c74','complete','msg_01a1ff1c4d39c949f74402','8ac62c77b96d063ffe9681b1','{"kind":"subagent","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.2891626,"finished":1795281407.2924845,"usage":{"input":854,"output":10,"reasoning":0,"cache_read":0,"cache_write":854,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"89fd18dd925445c62f346b75","prefix_fingerprint":"918ef2bc7bbfcc4fbcc07a9e","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":null,"prune_ids":[],"estimated_input":906,"estimated_growth":10,"estimated_messages":10,"known_input":null,"actual_growth":null,"actual_input":854,"max_output":2000,"thinking":"medium","finish_reason":"tool_calls","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(4,'ses_01a1ff1c4d3419bdc15648','step_01a1ff1c4d7ea3ded48b55','complete','msg_01a1ff1c4d7ebfaf2ca8b2','8ac62c77b96d063ffe9681b1','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.3580945,"finished":1795281407.3600435,"usage":{"input":885,"output":5,"reasoning":0,"cache_read":832,"cache_write":53,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":3,"sent_fingerprint":"e7c16110ec8ba21708bbf6ac","prefix_fingerprint":"7ea00cb11783d04ef07edc8c","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":"step_01a1ff1c4d39e43ffaaadc","prune_ids":[],"estimated_input":877,"estimated_growth":13,"estimated_messages":null,"known_input":864,"actual_growth":21,"actual_input":885,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(5,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4d80b92333a320','complete','msg_01a1ff1c4d7ebfaf2ca8b2','8ac62c77b96d063ffe9681b1','{"kind":"subagent","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.3580945,"finished":1795281407.3600435,"usage":{"input":885,"output":5,"reasoning":0,"cache_read":832,"cache_write":53,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":3,"sent_fingerprint":"e7c16110ec8ba21708bbf6ac","prefix_fingerprint":"7ea00cb11783d04ef07edc8c","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":"step_01a1ff1c4d39e43ffaaadc","prune_ids":[],"estimated_input":877,"estimated_growth":13,"estimated_messages":null,"known_input":864,"actual_growth":21,"actual_input":885,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(6,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4d8b0fa030c282','complete','msg_01a1ff1c4d8bcaace67685','ae54cffa430c43dd77a07dd8','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.37124,"finished":1795281407.3740425,"usage":{"input":1038,"output":5,"reasoning":0,"cache_read":960,"cache_write":78,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":3,"sent_fingerprint":"918aec0188598d4c9ae43c60","prefix_fingerprint":"758c9b56b2e8d4260aca94c6","fixed_fingerprint":"a355e20d1eee76fb9587ad91","anchor_step":"step_01a1ff1c4c2463e0405a83","prune_ids":[],"estimated_input":1030,"estimated_growth":15,"estimated_messages":null,"known_input":1015,"actual_growth":23,"actual_input":1038,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(7,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4d9d90521177a8','complete','msg_01a1ff1c4d9d2498c445e2','b155c8fcf9836306bdc67a77','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.3898225,"finished":1795281407.391437,"usage":{"input":1078,"output":4,"reasoning":0,"cache_read":960,"cache_write":118,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":5,"sent_fingerprint":"3dc7c69e1ab531ac085aa402","prefix_fingerprint":"2db94fc21c6cb9756279949c","fixed_fingerprint":"27bacbcf1c902295e147f49f","anchor_step":"step_01a1ff1c4d8b0fa030c282","prune_ids":[],"estimated_input":1068,"estimated_growth":9,"estimated_messages":null,"known_input":null,"actual_growth":null,"actual_input":1078,"max_output":2000,"thinking":"high","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(8,'ses_01a1ff1c4c0a467ed10e41','step_01a1ff1c4daad489199fd2','complete','msg_01a1ff1c4daa3f71e39583','b155c8fcf9836306bdc67a77','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.402747,"finished":1795281407.4055536,"usage":{"input":1080,"output":8,"reasoning":0,"cache_read":1024,"cache_write":56,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":5,"sent_fingerprint":"cd2951b28f09b0596d1ca860","prefix_fingerprint":"3cb406df7abd8a8dd674b0e9","fixed_fingerprint":"27bacbcf1c902295e147f49f","anchor_step":"step_01a1ff1c4d8b0fa030c282","prune_ids":["cmp_01a1ff1c4da2d9ac8a208a"],"estimated_input":1061,"estimated_growth":8,"estimated_messages":null,"known_input":null,"actual_growth":null,"actual_input":1080,"max_output":2000,"thinking":"high","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(9,'ses_01a1ff1c4db7eaa271b6e2','step_01a1ff1c4c2463e0405a83','complete','msg_01a1ff1c4c255b24e5ae77','ae54cffa430c43dd77a07dd8','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.0129976,"finished":1795281407.016786,"usage":{"input":997,"output":18,"reasoning":0,"cache_read":0,"cache_write":997,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"a2408b98cda06662fc484ec0","prefix_fingerprint":"f55af5f5b6c34505f1155f6b","fixed_fingerprint":"a355e20d1eee76fb9587ad91","anchor_step":null,"prune_ids":[],"estimated_input":1065,"estimated_growth":8,"estimated_messages":8,"known_input":null,"actual_growth":null,"actual_input":997,"max_output":2000,"thinking":"medium","finish_reason":"tool_calls","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(10,'ses_01a1ff1c4db7eaa271b6e2','step_01a1ff1c4d3cac66c37c74','complete','msg_01a1ff1c4d39c949f74402','8ac62c77b96d063ffe9681b1','{"kind":"subagent","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.2891626,"finished":1795281407.2924845,"usage":{"input":854,"output":10,"reasoning":0,"cache_read":0,"cache_write":854,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"89fd18dd925445c62f346b75","prefix_fingerprint":"918ef2bc7bbfcc4fbcc07a9e","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":null,"prune_ids":[],"estimated_input":906,"estimated_growth":10,"estimated_messages":10,"known_input":null,"actual_growth":null,"actual_input":854,"max_output":2000,"thinking":"medium","finish_reason":"tool_calls","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(11,'ses_01a1ff1c4db7eaa271b6e2','step_01a1ff1c4d80b92333a320','complete','msg_01a1ff1c4d7ebfaf2ca8b2','8ac62c77b96d063ffe9681b1','{"kind":"subagent","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.3580945,"finished":1795281407.3600435,"usage":{"input":885,"output":5,"reasoning":0,"cache_read":832,"cache_write":53,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":3,"sent_fingerprint":"e7c16110ec8ba21708bbf6ac","prefix_fingerprint":"7ea00cb11783d04ef07edc8c","fixed_fingerprint":"a0167d1a45cbfe47bef2b497","anchor_step":"step_01a1ff1c4d39e43ffaaadc","prune_ids":[],"estimated_input":877,"estimated_growth":13,"estimated_messages":null,"known_input":864,"actual_growth":21,"actual_input":885,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(12,'ses_01a1ff1c4db7eaa271b6e2','step_01a1ff1c4d8b0fa030c282','complete','msg_01a1ff1c4d8bcaace67685','ae54cffa430c43dd77a07dd8','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.37124,"finished":1795281407.3740425,"usage":{"input":1038,"output":5,"reasoning":0,"cache_read":960,"cache_write":78,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":3,"sent_fingerprint":"918aec0188598d4c9ae43c60","prefix_fingerprint":"758c9b56b2e8d4260aca94c6","fixed_fingerprint":"a355e20d1eee76fb9587ad91","anchor_step":"step_01a1ff1c4c2463e0405a83","prune_ids":[],"estimated_input":1030,"estimated_growth":15,"estimated_messages":null,"known_input":1015,"actual_growth":23,"actual_input":1038,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(13,'ses_01a1ff1c4db7eaa271b6e2','step_01a1ff1c4daad489199fd2','complete','msg_01a1ff1c4daa3f71e39583','b155c8fcf9836306bdc67a77','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.402747,"finished":1795281407.4055536,"usage":{"input":1080,"output":8,"reasoning":0,"cache_read":1024,"cache_write":56,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":5,"sent_fingerprint":"cd2951b28f09b0596d1ca860","prefix_fingerprint":"3cb406df7abd8a8dd674b0e9","fixed_fingerprint":"27bacbcf1c902295e147f49f","anchor_step":"step_01a1ff1c4d8b0fa030c282","prune_ids":["cmp_01a1ff1c4da2d9ac8a208a"],"estimated_input":1061,"estimated_growth":8,"estimated_messages":null,"known_input":null,"actual_growth":null,"actual_input":1080,"max_output":2000,"thinking":"high","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
INSERT INTO "step" VALUES(14,'ses_01a1ff1c4e0e9fd46a5850','step_01a1ff1c4e24dc261600bb','complete','msg_01a1ff1c4e24a7b013298f','6571ac4c873aa8e405f8f207','{"kind":"turn","model_key":"demo","provider":"demo","api":"chat","model":"demo","created":1795281407.5244708,"finished":1795281407.5332997,"usage":{"input":994,"output":2,"reasoning":0,"cache_read":0,"cache_write":994,"source":"provider","context":true,"reasoning_source":"provider","output_source":"provider","cache_write_1h":null},"sent_count":1,"sent_fingerprint":"0df9991b5c7cd1ee106d2365","prefix_fingerprint":"2b4344fb41c90d04de9fdccd","fixed_fingerprint":"1cbcaa4c7bdf505c44ba7747","anchor_step":null,"prune_ids":[],"estimated_input":1062,"estimated_growth":6,"estimated_messages":6,"known_input":null,"actual_growth":null,"actual_input":994,"max_output":2000,"thinking":"medium","finish_reason":"stop","cost_usd":0.0,"failure":null,"window":16000,"sent_reasoning":[],"dropped_blocks":0}');
CREATE TABLE token_count (fingerprint TEXT PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "token_count" VALUES('10177fc1f3b40f6ba652a9e6',54);
INSERT INTO "token_count" VALUES('173e5a3b450ba3ecc82aec1d',52);
INSERT INTO "token_count" VALUES('1b9ab8a67de492b05e8523c9',111);
INSERT INTO "token_count" VALUES('2301467c9c81c0d2daa79abf',75);
INSERT INTO "token_count" VALUES('7eae73f4490938a7d7c2db0c',67);
INSERT INTO "token_count" VALUES('bcb8d00c2866197a9da00a2e',83);
INSERT INTO "token_count" VALUES('bcdf78a654feaec97dbde458',53);
INSERT INTO "token_count" VALUES('cb1b698d816242f76594987c',78);
INSERT INTO "token_count" VALUES('cd3816623076440c2b9b51fd',287);
INSERT INTO "token_count" VALUES('d75c6902cb586a321f35aab0',17);
INSERT INTO "token_count" VALUES('e3c8f48b40a77075e2d56430',53);
INSERT INTO "token_count" VALUES('e6f0fa7f740562cb0d8b37f8',37);
INSERT INTO "token_count" VALUES('eaa33fbf2731bd2d5e15ebe1',52);
INSERT INTO "token_count" VALUES('f964850b3bfe756e5289c4d0',107);
CREATE TABLE trusted (folder BLOB PRIMARY KEY, created REAL NOT NULL, identity TEXT NOT NULL DEFAULT '', content TEXT) WITHOUT ROWID;
CREATE TABLE waiting (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (session_id, id)
    );
INSERT INTO "waiting" VALUES(1,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4df9d5bf1ebf4a','{"id":"msg_01a1ff1c4df9d5bf1ebf4a","role":"user","parts":[{"text":"and then the changelog","provider_metadata":null,"type":"text"}],"status":"complete","parent_id":null,"created":1795281407.481306,"origin":null,"step_id":null,"raw_tokens":null,"note":null,"provider_metadata":null}');
INSERT INTO "waiting" VALUES(2,'ses_01a1ff1c4c0a467ed10e41','msg_01a1ff1c4e02fd22cd4500','{"id":"msg_01a1ff1c4e02fd22cd4500","role":"user","parts":[{"name":"a.png","media_type":"image/png","text":null,"data":"aGk=","path":null,"provider_metadata":null,"type":"attachment"}],"status":"complete","parent_id":null,"created":1795281407.490165,"origin":null,"step_id":null,"raw_tokens":null,"note":null,"provider_metadata":null}');
CREATE INDEX session_by_age ON session (updated, id);
CREATE INDEX session_by_project ON session (project, updated, id);
CREATE INDEX message_in_order ON message (session_id, in_tree, n);
CREATE INDEX message_draft ON message (session_id) WHERE status = 'streaming';
CREATE INDEX step_in_order ON step (session_id, n);
CREATE INDEX step_fixed ON step (fixed_id);
CREATE INDEX step_running ON step (session_id) WHERE status = 'running';
CREATE INDEX snapshot_content ON snapshot (content_id);
CREATE INDEX growth_by_model ON growth (model, n);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('permission_rule',0);
INSERT INTO "sqlite_sequence" VALUES('message',20);
INSERT INTO "sqlite_sequence" VALUES('step',14);
INSERT INTO "sqlite_sequence" VALUES('compaction',2);
INSERT INTO "sqlite_sequence" VALUES('snapshot',0);
INSERT INTO "sqlite_sequence" VALUES('waiting',2);
COMMIT;
